"""Merging runs that have no branch between them. No result depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triradix.reference.births import move_anchors
from triradix.reference.log import MERGE, note
from triradix.reference.marks import Marks, Reads, pruned, put_reads
from triradix.reference.node import Run

if TYPE_CHECKING:
    from triradix.reference.tree import Tree

MOST_MERGED_MARKS = 32
"""A merge never makes a run with more: it would soon be split again."""


def merge_upwards(tree: Tree, run: Run) -> None:
    """While ``run`` is an only child, let it take in its parent, if that costs nothing or is worth its cost.

    Windows that lie in one span join for free. Else both are copied, but only if the upper is not longer than twice
    the lower: so a sequence that grows by turns is copied O(log n) times a token.
    """
    while True:
        upper = run.parent
        if upper is None or len(upper.children) > 1 or upper.is_root:
            return
        if upper.span is not run.span and upper.end - upper.start > 2 * (run.end - run.start):
            return
        marks = pruned((*upper.inner, upper.copy(), *run.marks))
        if len(marks) > MOST_MERGED_MARKS:
            return
        _merge(tree, upper, run, marks[:-1])


def _merge(tree: Tree, upper: Run, run: Run, inner: Marks) -> None:
    parent = upper.parent
    assert parent is not None, "a root is not merged"
    note(tree.undo, MERGE, upper.end - upper.start, run.end - run.start)
    tree.undo.keep(upper)
    tree.undo.keep(run)
    page = upper.first_page(tree.page_size)
    tree.undo.keep_entry(parent.children, page)
    if upper.span is not run.span:
        span = upper.span.joined_with(run.span, upper.start, run.start, run.end)
        tree.hold(span)
        tree.let_go(upper.span, upper.end - upper.start)
        tree.let_go(run.span, run.end - run.start)
        run.span = span
    if len(upper.digests) * tree.page_size == upper.end - upper.start:
        run.digests = upper.digests + run.digests
    else:
        tree.counts.digests -= len(run.digests)
        run.digests = upper.digests
    move_anchors(tree, upper.marks, upper, run, None)
    _join_reads(tree, upper, run)
    tree.counts.marks += len(inner) - len(upper.inner) - len(run.inner)
    run.inner = inner
    if run.locked_end == run.start:
        run.locked_end = upper.locked_end
    run.start = upper.start
    run.parent = parent
    parent.children[page] = run
    tree.empty(upper)


def _join_reads(tree: Tree, upper: Run, run: Run) -> None:
    """Lay on the reads of ``run`` what ``upper`` knows of later ones."""
    last = run.last_at(run.start)
    if upper.last > last:
        last = upper.last
        put_reads(tree, run, len(run.reads or ()), Reads((upper.end,), (last,)))
    later = upper.reads and upper.reads.between(upper.reads.until(last))
    if later:
        put_reads(tree, run, len(run.reads or ()), later)
