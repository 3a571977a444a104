"""Marks: what the calls that ended at a page wrote there.

A page's ``last_access`` and ``priority`` are the maximum, its ``hit_count`` and locks the sum, over the calls that
ended at it or below it. So a call writes at one page only, however long the path above it; and when a page goes, what
its mark says is folded into the page above.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from triradix.arguments import INT64_MIN
from triradix.reference.births import Birth

_END = attrgetter("end")


class Mark:
    """Closes a segment: the pages of a run after the mark above it, down to ``end``. They share all that a policy sees.

    A new mark is neutral: it says nothing of its page.
    """

    __slots__ = ("birth", "end", "hits", "last", "locks", "priority")

    def __init__(
        self, end: int, birth: Birth, last: int = 0, priority: int = INT64_MIN, hits: int = 0, locks: int = 0
    ) -> None:
        self.end = end
        """The depth at which its page ends."""
        self.birth = birth
        """The birth of every page of the segment."""
        self.last = last
        self.priority = priority
        self.hits = hits
        """May be negative: an insert takes back here the hits that do not count."""
        self.locks = locks

    def fold(self, gone: Mark) -> None:
        """Take over what the mark of an evicted page below says. (It has no locks: locked pages are not evicted.)"""
        self.last = max(self.last, gone.last)
        self.priority = max(self.priority, gone.priority)
        self.hits += gone.hits

    def adds_nothing_to(self, deeper: Mark) -> bool:
        """Whether it can be dropped from right above ``deeper`` without a page changing in anything."""
        return (
            self.birth == deeper.birth
            and self.last <= deeper.last
            and self.priority <= deeper.priority
            and not self.hits
            and not self.locks
        )

    def copy(self) -> Mark:
        return Mark(self.end, self.birth, self.last, self.priority, self.hits, self.locks)

    def said(self) -> tuple[int, int, int, int, int, int]:
        return (self.end, self.birth, self.last, self.priority, self.hits, self.locks)

    def say(self, said: tuple[int, int, int, int, int, int]) -> None:
        self.end, self.birth, self.last, self.priority, self.hits, self.locks = said


Marks = tuple[Mark, ...]
"""Sorted by end. Never changed but replaced, so that `Undo` need only remember which it was."""


def segment(marks: Marks, depth: int) -> int:
    """The position of the first mark at or below ``depth``; behind the last one if there is none. O(log marks)."""
    if not marks or depth > marks[-1].end:
        return len(marks)
    return bisect_left(marks, depth, key=_END)


def pruned(marks: Marks) -> Marks:
    """The marks without those to which all deeper ones together leave nothing to say. O(marks)."""
    kept = [marks[-1]]
    last, priority = marks[-1].last, marks[-1].priority
    for mark in reversed(marks[:-1]):
        said = mark.last <= last and mark.priority <= priority and not mark.hits and not mark.locks
        if not said or mark.birth != kept[-1].birth:
            kept.append(mark)
            last, priority = max(last, mark.last), max(priority, mark.priority)
    return tuple(reversed(kept))
