"""Births: what lets a handle find its page again, and know for ever when it is gone.

One insert makes one chain of new pages: a birth, named by the tick of that insert. It makes at most one page at each
depth, so (birth, depth) names a page for ever. Eviction frees pages from the tail, so what survives of a birth is still
a chain; the tree knows the run that holds its deepest surviving page, its anchor, and every other page of it lies above
on that path.

A birth is a number and the anchors stand in one dict: there is no object a birth that the garbage collector would walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triradix.reference.marks import Marks
    from triradix.reference.node import Run
    from triradix.reference.tree import Tree

Birth = int
"""The tick of the insert: the ``creation`` of its pages."""


def find(anchors: dict[Birth, Run], birth: Birth, depth: int) -> Run | None:
    """The run that holds the page of ``birth`` that ends at ``depth``; None if the page is gone.

    O(runs between the anchor and the page).
    """
    run = anchors.get(birth)
    if run is None or depth > run.end:
        return None
    if depth <= run.start:
        run = run.holder(depth)
    # Below the last page of the birth, the anchor may hold pages of later births.
    return run if run.mark_of(depth).birth == birth else None


def move_anchors(tree: Tree, marks: Marks, old: Run, new: Run, going_on: Birth | None) -> None:
    """The pages of ``marks`` went from one run to another; the birth ``going_on`` has pages below them."""
    anchors = tree.anchors
    for mark in marks:
        birth = mark.birth
        if birth != going_on and anchors[birth] is old:
            tree.undo.keep_entry(anchors, birth)
            anchors[birth] = new
