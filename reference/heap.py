"""Ranks, and the lazy heap that eviction asks for whoever goes next."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from triradix.reference.undo import Undo

if TYPE_CHECKING:
    from triradix.reference.node import Run

Rank = Any
"""An int or a tuple of two, one kind for all of a tree; the smallest goes first."""


def rank_of_leaf(policy: str, slru_threshold: int) -> Callable[[Run], Rank]:
    """How a policy ranks the last page of a run without children, of which the run says everything."""
    ranks: dict[str, Callable[[Run], Rank]] = {
        "lru": lambda leaf: leaf.last,
        "lfu": lambda leaf: (leaf.hits, leaf.last),
        "fifo": lambda leaf: leaf.birth,
        "mru": lambda leaf: -leaf.last,
        "filo": lambda leaf: -leaf.birth,
        "priority": lambda leaf: (leaf.priority, leaf.last),
        "slru": lambda leaf: (leaf.hits >= slru_threshold, leaf.last),
    }
    return ranks[policy]


def ranks_by_hits(policy: str) -> bool:
    return policy in ("lfu", "slru")


class Queued(Protocol):
    queued: Rank | None


_Item = TypeVar("_Item", bound=Queued)


class Queue(Generic[_Item]):
    """A lazy heap: the item of smallest rank, in amortised O(log items).

    The heap holds ranks, and a dict says whose they are: nothing there is an object that the garbage collector walks.
    ``item.queued`` is the rank that stands for an item; ranks in the heap that stand for nobody any more are dropped
    when they surface. A rank that grew is left as it is, so a match costs nothing here: it is put right when it
    surfaces. Therefore: what stands for an item is never above its true rank. Two items never want one rank at the same
    time, but a rank may be left over from one that is no candidate now; then it goes to the other.
    """

    __slots__ = ("_heap", "_items", "_rank", "_undo")

    def __init__(self, undo: Undo, rank: Callable[[_Item], Rank | None]) -> None:
        self._undo = undo
        self._rank = rank
        """The true rank of an item now; None if it is no candidate."""
        self._items: dict[Rank, _Item] = {}
        self._heap: list[Rank] = []
        """At least the keys of ``_items``. At most three times as many, and a few: then it is made anew."""

    def offer(self, item: _Item, rank: Rank) -> bool:
        """Let ``item`` stand in the queue with at most ``rank``; whether that was new."""
        if item.queued is not None:
            if item.queued <= rank:
                return False
            self.withdraw(item)
        holder = self._items.get(rank)
        if holder is not None:
            self.withdraw(holder)
        self._undo.append((setattr, item, "queued", None))
        self._undo.append((self._items.pop, rank, None))
        heappush(self._heap, rank)
        self._items[rank] = item
        item.queued = rank
        if len(self._heap) > 3 * len(self._items) + 64:
            self._heap[:] = sorted(self._items)  # one step, and what is sorted is a heap
        return True

    def withdraw(self, item: _Item) -> None:
        """Let ``item`` stand in the queue no more."""
        rank = item.queued
        if rank is not None:
            self._undo.append((heappush, self._heap, rank))
            self._undo.append((self._items.__setitem__, rank, item))
            self._undo.append((setattr, item, "queued", rank))
            del self._items[rank]
            item.queued = None

    def smallest(self) -> _Item | None:
        """The candidate of smallest rank; it stays in the queue, its ``queued`` is its true rank."""
        while self._heap:
            queued = self._heap[0]
            item = self._items.get(queued)
            if item is None:
                heappop(self._heap)
                continue
            rank = self._rank(item)
            if rank == queued:
                return item
            self.withdraw(item)
            if rank is not None:
                self.offer(item, rank)
        return None

    def good(self) -> list[_Item]:
        """The items that stand in the queue."""
        return [self._items[rank] for rank in set(self._heap) if rank in self._items]
