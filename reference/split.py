"""Splitting a run in two. Nothing is copied: both show windows of the span that was there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triradix.reference.births import move_anchors
from triradix.reference.log import MADE, SPLIT, note
from triradix.reference.marks import segment
from triradix.reference.node import Run

if TYPE_CHECKING:
    from triradix.reference.tree import Tree

MOST_MARKS = 64
"""A run with more is split in two, so that no step costs more than this many marks."""


def split(tree: Tree, run: Run, depth: int) -> Run:
    """Make the pages of ``run`` down to ``depth`` a run of their own, above it; returns that. Copies no page."""
    parent = run.parent
    assert parent is not None, "a root has no pages to split"
    tree.undo.keep(run)
    page, below = run.first_page(tree.page_size), run.span.between(depth, depth + tree.page_size)
    tree.undo.keep_entry(parent.children, page)
    inner = run.inner
    cut = segment(inner, depth)
    upper = Run(run.space, parent, run.start, depth, run.span, run.birth_at(depth))
    upper.inner, below_cut = inner[:cut], inner[cut:]
    upper.last = run.last_at(depth)
    if run.reads is not None:
        reads, deeper, here = run.reads, run.reads.below(depth + 1), run.reads.below(depth)
        run.reads, upper.reads = reads.between(0, deeper) or None, reads.between(here) or None
        tree.counts.reads -= here - deeper
    if below_cut and below_cut[0].end == depth:  # the mark of the last page above is there; else that page has none
        upper.say(below_cut[0].said())
        below_cut = below_cut[1:]
    pages = (depth - run.start) // tree.page_size
    upper.digests, run.digests = run.digests[:pages], run.digests[pages:]
    upper.locked_end = min(run.locked_end, depth)
    upper.locked_children = int(run.locked_end > depth)
    upper.children[below] = run
    tree.counts.runs += 1
    tree.counts.marks += len(upper.inner) + len(below_cut) - len(inner)
    run.inner = below_cut
    run.start = depth
    run.locked_end = max(run.locked_end, depth)
    run.parent = upper
    parent.children[page] = upper
    move_anchors(tree, upper.marks, run, upper, run.marks[0].birth)
    note(tree.undo, MADE, upper.end - upper.start, upper.start)
    note(tree.undo, SPLIT, depth, run.end - depth)
    return upper


def limit_marks(tree: Tree, run: Run) -> None:
    if len(run.inner) >= MOST_MARKS:
        split(tree, run, run.inner[MOST_MARKS // 2].end)
