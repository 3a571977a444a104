"""Paths: following a key down, writing where a call ended, reading the slots above."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from triradix.arguments import INT64_MIN
from triradix.keys import Slots
from triradix.reference import marks as marks_
from triradix.reference.births import Birth
from triradix.reference.marks import Mark
from triradix.reference.merge import merge_upwards
from triradix.reference.node import Run
from triradix.reference.span import Units
from triradix.reference.split import limit_marks

if TYPE_CHECKING:
    from triradix.reference.tree import Tree


def walk(tree: Tree, run: Run, depth: int, key: Units, goal: int) -> tuple[Run, int]:
    """Follow ``key`` from the page of ``run`` that ends at ``depth`` as far as it is cached, to ``goal`` at most.

    Returns the run and the depth where the walk ended. O(goal - depth, and the runs walked through).
    """
    while True:
        if depth < run.end and depth < goal:
            depth = run.span.equal_until(key, depth, min(run.end, goal))
            depth -= depth % tree.page_size
        if depth < run.end or depth == goal:
            return run, depth
        child = run.children.get(key.between(depth, depth + tree.page_size))
        if child is None:
            return run, depth
        run = child


def match(tree: Tree, run: Run, depth: int, key: Units, goal: int) -> tuple[int, Birth | None]:
    """The depth that ``key`` reaches, and the birth of the page there (None: the root)."""
    start = key.base
    run, depth = walk(tree, run, depth, key, goal)
    counts = tree.counts
    counts.clock += 1
    counts.lookups += 1
    counts.lookup_tokens += goal - start
    counts.hit_tokens += depth - start
    return depth, None if run.is_root else write(tree, run, depth, counts.clock)


def write(tree: Tree, run: Run, depth: int, last: int, priority: int = INT64_MIN, hits: int = 0) -> Birth:
    """Write at the mark of the page of ``run`` that ends at ``depth``; returns the birth of that page.

    Afterwards the page may stand in a new run above ``run``.
    """
    tree.undo.keep(run)
    marks = run.marks
    before = len(marks)
    at = marks_.ensure(marks, depth)
    mark = marks[at]
    tree.undo.keep(mark)
    mark.last = max(mark.last, last)
    mark.priority = max(mark.priority, priority)
    mark.hits += hits
    marks_.prune(marks, at)
    tree.counts.marks += len(marks) - before
    if len(marks) < before:
        merge_upwards(tree, run)
    limit_marks(tree, run)
    if depth == run.end:
        tree.offer(run)
    return mark.birth


def mark_at(tree: Tree, run: Run, depth: int) -> Mark:
    """The mark of the page of ``run`` that ends at ``depth``, to be changed.

    The page may stand in a new run above ``run`` afterwards.
    """
    tree.undo.keep(run)
    before = len(run.marks)
    mark = run.marks[marks_.ensure(run.marks, depth)]
    tree.undo.keep(mark)
    tree.counts.marks += len(run.marks) - before
    limit_marks(tree, run)
    return mark


def prune_above(tree: Tree, run: Run, at: int) -> None:
    """Drop the marks of ``run`` that add nothing to ``run.marks[at]`` any more."""
    before = len(run.marks)
    marks_.prune(run.marks, at)
    tree.counts.marks += len(run.marks) - before


def path_slots(tree: Tree, run: Run, start: int, end: int) -> Slots:
    """The slots (start, end] of the path that ends in ``run``. O(result, and the runs above)."""
    slots = np.empty(max(end - start, 0), np.int64)
    while end > start:
        run = run.holder(end)
        top = max(run.start, start)
        slots[top - start : end - start] = run.span.slots_between(top, end)
        end = top
    return slots
