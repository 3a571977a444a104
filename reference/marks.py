"""Marks and reads: what the calls that ended at a page wrote there.

A page's ``last_access`` and ``priority`` are the maximum, its ``hit_count`` and locks the sum, over the calls that
ended at it or below it. So a call writes at one page only, however long the path above it; and when a page goes, what
was written there is folded into the page above.

Most calls say only when they came, and each came later than all before it. So that is kept apart from what marks say,
and costs less: as `Reads`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter, neg
from typing import TYPE_CHECKING

from triradix.arguments import INT64_MIN
from triradix.reference.births import Birth

if TYPE_CHECKING:
    from triradix.reference.node import Run
    from triradix.reference.tree import Tree

_END = attrgetter("end")


class Mark:
    """Closes pages of a run: those after the mark above it, down to ``end``. They differ in their last use at most.

    A new mark is neutral: it says nothing of its page.
    """

    __slots__ = ("birth", "end", "hits", "locks", "priority")

    def __init__(self, end: int, birth: Birth, priority: int = INT64_MIN, hits: int = 0, locks: int = 0) -> None:
        self.end = end
        """The depth at which its page ends."""
        self.birth = birth
        """The birth of every page that it closes."""
        self.priority = priority
        self.hits = hits
        """May be negative: an insert takes back here the hits that do not count."""
        self.locks = locks

    def fold(self, gone: Mark) -> None:
        """Take over what the mark of an evicted page below says. (It has no locks: locked pages are not evicted.)"""
        self.priority = max(self.priority, gone.priority)
        self.hits += gone.hits

    def adds_nothing_to(self, deeper: Mark) -> bool:
        """Whether it can be dropped from right above ``deeper`` without a page changing in anything."""
        return self.birth == deeper.birth and self.priority <= deeper.priority and not self.hits and not self.locks

    def copy(self) -> Mark:
        return Mark(self.end, self.birth, self.priority, self.hits, self.locks)

    def said(self) -> tuple[int, int, int, int, int]:
        return (self.end, self.birth, self.priority, self.hits, self.locks)

    def say(self, said: tuple[int, int, int, int, int]) -> None:
        self.end, self.birth, self.priority, self.hits, self.locks = said


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
    priority = marks[-1].priority
    for mark in reversed(marks[:-1]):
        said = mark.priority <= priority and not mark.hits and not mark.locks
        if not said or mark.birth != kept[-1].birth:
            kept.append(mark)
            priority = max(priority, mark.priority)
    return tuple(reversed(kept))


class Reads:
    """The calls that ended inside a run and were the last to use some page of it: a stack, the deepest at the bottom.

    A call uses its page and all above. So what earlier calls that ended there say is void: they are taken off, in one
    step however many they are, and it is laid on those that ended deeper. Hence from the bottom to the top the ends
    fall and the ticks rise.

    Two columns of plain numbers, 16 bytes a call and nothing for the garbage collector: a run may have one at each of
    its pages.
    """

    __slots__ = ("ends", "ticks")

    def __init__(self, ends: Iterable[int] = (), ticks: Iterable[int] = ()) -> None:
        self.ends = array("q", ends)
        """The depths where the calls ended."""
        self.ticks = array("q", ticks)

    def __len__(self) -> int:
        return len(self.ends)

    def below(self, depth: int) -> int:
        """How many ended at ``depth`` or below; they are the first. O(log reads)."""
        return bisect_right(self.ends, -depth, key=neg)

    def until(self, tick: int) -> int:
        """How many came at ``tick`` or before; they are the first. O(log reads)."""
        return bisect_right(self.ticks, tick)

    def between(self, first: int, end: int | None = None) -> Reads:
        return Reads(self.ends[first:end], self.ticks[first:end])


def put_reads(tree: Tree, run: Run, first: int, reads: Reads) -> None:
    """Put ``reads`` in the place of those of ``run`` from position ``first`` on."""
    undo, counts = tree.undo, tree.counts
    if run.reads is None:
        undo.append((setattr, run, "reads", None))
        run.reads = Reads()
    here = run.reads
    undo.append((setattr, counts, "reads", counts.reads))
    counts.reads += first + len(reads) - len(here)
    for column, new in ((here.ends, reads.ends), (here.ticks, reads.ticks)):
        undo.append((column.__setitem__, slice(first, None), column[first:]))
        column[first:] = new


def drop_old_reads(tree: Tree, run: Run) -> None:
    """Drop the reads of ``run`` that came before its last use, and so say nothing any more. O(those that stay)."""
    if run.reads is not None:
        tree.undo.append((setattr, tree.counts, "reads", tree.counts.reads))
        tree.undo.append((setattr, run, "reads", run.reads))
        old = run.reads.until(run.last)
        tree.counts.reads -= old
        run.reads = run.reads.between(old) if old < len(run.reads) else None
