"""Ranks, and the lazy heap that eviction asks for whoever goes next."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Generic, Protocol, TypeVar

from triradix.reference.marks import Mark

Rank = tuple[int, ...]
"""The smallest goes first."""


def rank_of_mark(policy: str, slru_threshold: int) -> Callable[[Mark], Rank]:
    """How a policy ranks a page without children, of which its mark says everything. The smallest goes first."""
    ranks: dict[str, Callable[[Mark], Rank]] = {
        "lru": lambda mark: (mark.last,),
        "lfu": lambda mark: (mark.hits, mark.last),
        "fifo": lambda mark: (mark.birth.creation,),
        "mru": lambda mark: (-mark.last,),
        "filo": lambda mark: (-mark.birth.creation,),
        "priority": lambda mark: (mark.priority, mark.last),
        "slru": lambda mark: (mark.hits >= slru_threshold, mark.last),
    }
    return ranks[policy]


def ranks_by_hits(policy: str) -> bool:
    return policy in ("lfu", "slru")


class Queued(Protocol):
    queued: Rank | None


_Item = TypeVar("_Item", bound=Queued)


class Queue(Generic[_Item]):
    """A lazy heap: the item of smallest rank, in amortised O(log items).

    ``item.queued`` is the rank tuple of the item's one good entry (by identity); other entries of it are left over and
    are dropped when they surface. A rank that grew leaves its entry as it is, so a match costs nothing here: the entry
    is put right when it surfaces. Therefore: an entry's rank is never above the true rank of its item.
    """

    __slots__ = ("_entries", "_limit", "_rank", "_serial")

    def __init__(self, rank: Callable[[_Item], Rank | None]) -> None:
        self._rank = rank
        """The true rank of an item now; None if it is no candidate."""
        self._entries: list[tuple[Rank, int, _Item]] = []
        self._serial = count()
        """Orders entries of one rank (one of them is then left over), since items do not compare."""
        self._limit = 64
        """Entries at which those left over are swept out: at most half as many again are then good, or it doubles."""

    def offer(self, item: _Item, rank: Rank) -> bool:
        """Let ``item`` stand in the queue with at most ``rank``; whether that took a new entry."""
        if item.queued is not None and item.queued <= rank:
            return False
        item.queued = rank
        heappush(self._entries, (rank, next(self._serial), item))
        if len(self._entries) > self._limit:
            self._entries = [entry for entry in self._entries if entry[2].queued is entry[0]]
            heapify(self._entries)
            self._limit = 2 * len(self._entries) + 64
        return True

    def smallest(self) -> _Item | None:
        """The candidate of smallest rank; it stays in the queue, its ``queued`` is its true rank."""
        while self._entries:
            queued, _, item = self._entries[0]
            if item.queued is not queued:
                heappop(self._entries)
                continue
            rank = self._rank(item)
            if rank == queued:
                return item
            item.queued = rank
            if rank is None:
                heappop(self._entries)
            else:
                heapreplace(self._entries, (rank, next(self._serial), item))
        return None

    def good(self) -> list[_Item]:
        """The items that stand in the queue."""
        return [item for queued, _, item in self._entries if item.queued is queued]

    def clear(self) -> None:
        self._entries.clear()
