"""Births: what lets a handle find its page again, and know for ever when it is gone.

One insert makes one chain of new pages: a birth. It makes at most one page at each depth, so (birth, depth) names a
page for ever. Eviction frees pages from the tail, so what survives of a birth is still a chain; the birth knows the
run that holds its deepest surviving page, its anchor, and every other page of it lies above on that path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triradix.reference.marks import Mark
    from triradix.reference.node import Run
    from triradix.reference.undo import Undo


class Birth:
    """The pages that one insert made."""

    __slots__ = ("anchor", "creation")

    def __init__(self, creation: int, anchor: Run) -> None:
        self.creation = creation
        """The tick of the insert."""
        self.anchor: Run | None = anchor
        """The run with the deepest page that is left; None when none is."""

    def state(self) -> Run | None:
        return self.anchor

    def restore(self, state: Run | None) -> None:
        self.anchor = state


def find(birth: Birth, depth: int) -> Run | None:
    """The run that holds the page of ``birth`` that ends at ``depth``; None if the page is gone.

    O(runs between the anchor and the page).
    """
    anchor = birth.anchor
    if anchor is None or depth > anchor.end:
        return None
    run = anchor.holder(depth)
    # Below the last page of the birth, the anchor may hold pages of later births.
    return run if run.birth_at(depth) is birth else None


def move_anchors(undo: Undo, marks: list[Mark], old: Run, new: Run, going_on: Birth | None) -> None:
    """The pages of ``marks`` went from one run to another; the birth ``going_on`` has pages below them."""
    for mark in marks:
        birth = mark.birth
        if birth.anchor is old and birth is not going_on:
            undo.keep(birth)
            birth.anchor = new
