"""What the tree notes for `triradix.log`: nothing unless asked, and then after the operation."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from triradix.log import COPY, EVICT, GONE, MADE, MERGE, RESET, SPLIT, Note, listen, tell

if TYPE_CHECKING:
    from triradix.reference.undo import Undo

__all__ = ["COPY", "EVICT", "GONE", "MADE", "MERGE", "RESET", "SPLIT", "hand_over", "note"]

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


def hand_over() -> None:
    """Between operations. Other threads may be at it too."""
    while _notes:
        with suppress(IndexError):
            tell("reference", [_notes.pop(0)])
