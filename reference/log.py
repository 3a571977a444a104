"""What the tree notes for `triradix.log`: nothing unless asked, and then after the operation."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from triradix.log import BROKEN, COPY, EVICT, GONE, MADE, MERGE, RESET, SHORT, SPLIT, Note, listen, tell

if TYPE_CHECKING:
    from triradix.reference.undo import Undo

__all__ = [
    "BROKEN", "COPY", "EVICT", "GONE", "MADE", "MERGE", "RESET", "SHORT", "SPLIT", "hand_over", "note", "tell_broken",
]  # fmt: skip

wanted = 0
"""The bits of what is to be noted."""

_notes: list[Note] = []


def _listen(bits: int) -> None:
    global wanted
    wanted = bits


listen("reference", _listen)


def note(undo: Undo, bit: int, first: int, second: int = 0) -> None:
    """Where something happens that may be told. What is undone is told to nobody."""
    if wanted & bit:
        undo.keep_length(_notes)
        _notes.append((bit, first, second))


def tell_broken() -> None:
    """A check has failed."""
    if wanted & BROKEN:
        hand_over()
        tell("reference", [(BROKEN, 0, 0)])


def hand_over() -> None:
    """Between operations. Other threads may be at it too."""
    told = []
    while _notes:
        with suppress(IndexError):
            told.append(_notes.pop(0))
    if told:
        tell("reference", told)
