"""Paths: following a key down, writing where a call ended, reading the slots above."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from triradix.arguments import INT64_MIN
from triradix.keys import Slots
from triradix.reference.births import Birth
from triradix.reference.marks import Mark, Marks, Reads, drop_old_reads, put_reads, segment
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
    page_size = tree.page_size
    while True:
        end = run.end
        if depth < end and depth < goal:
            depth = run.span.equal_until(key, depth, end if end < goal else goal)
            depth -= depth % page_size
        if depth < end or depth == goal:
            return run, depth
        child = run.children.get(key.between(depth, depth + page_size))
        if child is None:
            return run, depth
        run = child


def match(tree: Tree, run: Run, depth: int, key: Units, goal: int) -> tuple[int, Birth | None]:
    """The depth that ``key`` reaches, and the birth of the page there (None: the root)."""
    start = depth
    run, depth = walk(tree, run, depth, key, goal)
    counts = tree.counts
    tree.undo.append((counts.restore_lookups, counts.clock, counts.lookup_tokens, counts.hit_tokens))
    counts.clock += 1
    counts.lookup_tokens += goal - start
    counts.hit_tokens += depth - start
    return depth, read(tree, run, depth, counts.clock) if depth else None


def read(tree: Tree, run: Run, depth: int, tick: int) -> Birth:
    """Note that the last call so far, that of ``tick``, ended at the page of ``run`` that ends at ``depth``.

    Returns the birth of that page. O(log reads) amortised.
    """
    if depth < run.end:
        deeper = run.reads.below(depth + 1) if run.reads is not None else 0
        put_reads(tree, run, deeper, Reads((depth,), (tick,)))
        return run.birth_at(depth)
    tree.undo.append((setattr, run, "last", run.last))
    run.last = tick
    drop_old_reads(tree, run)
    if tree.ranks_fall:  # else the rank that a leaf has in the queue serves
        tree.offer(run)
    return run.birth


def write(tree: Tree, run: Run, depth: int, priority: int = INT64_MIN, hits: int = 0) -> None:
    """Write at the mark of the page of ``run`` that ends at ``depth``.

    Afterwards the page may stand in a new run above ``run``.
    """
    before = run.inner
    mark = mark_at(tree, run, depth)
    if priority > mark.priority:
        mark.priority = priority
    mark.hits += hits
    if run.inner:
        prune_above(tree, run, mark)
        if len(run.inner) < len(before):
            merge_upwards(tree, run)
        limit_marks(tree, run)
    if mark is run and hits < 0:  # as above
        tree.offer(run)


def mark_at(tree: Tree, run: Run, depth: int) -> Mark:
    """The mark of the page of ``run`` that ends at ``depth``, to be changed."""
    mark = run.mark_of(depth)
    if mark.end == depth:
        tree.undo.append((mark.say, mark.said()))
        return mark
    mark = Mark(depth, mark.birth)
    at = segment(run.inner, depth)
    set_inner(tree, run, (*run.inner[:at], mark, *run.inner[at:]))
    return mark


def prune_above(tree: Tree, run: Run, mark: Mark) -> None:
    """Drop the marks of ``run`` right above ``mark`` that add nothing to it. Amortised O(1)."""
    inner = run.inner
    at = first = segment(inner, mark.end)
    while first and inner[first - 1].adds_nothing_to(mark):
        first -= 1
    if first < at:
        set_inner(tree, run, inner[:first] + inner[at:])


def set_inner(tree: Tree, run: Run, inner: Marks) -> None:
    """Give ``run`` other inner marks."""
    tree.undo.keep(tree.counts)
    tree.undo.keep_value(run, "inner")
    tree.counts.marks += len(inner) - len(run.inner)
    run.inner = inner


def path_slots(tree: Tree, run: Run, start: int, end: int) -> Slots:
    """The slots (start, end] of the path that ends in ``run``. O(result, and the runs above)."""
    if start >= run.start and start < end:
        return run.span.slots_between(start, end).copy()
    slots = np.empty(max(end - start, 0), np.int64)
    while end > start:
        run = run.holder(end)
        top = max(run.start, start)
        slots[top - start : end - start] = run.span.slots_between(top, end)
        end = top
    return slots
