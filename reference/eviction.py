"""Eviction: whose last page goes next, and taking it.

Only the last page of a run without children can go, and all pages of a run's last segment have the same rank, while
ranks of different leaves differ. So eviction takes a whole segment, or as many of its pages as are wanted, at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from triradix.reference.marks import Mark

from triradix.keys import Slots

if TYPE_CHECKING:
    from triradix.reference.node import Run
    from triradix.reference.spaces import Space
    from triradix.reference.tree import Tree

Rank = tuple[int, ...]


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


def evict(tree: Tree, wanted: int | None, space: Space | None) -> tuple[list[Slots], list[bytes]]:
    """Free pages, of ``space`` or of any, until ``wanted`` units are free (None: all that can go).

    Returns the slots, and with events on the digests of the pages, both in the order of eviction.
    O(freed + segments · log leaves).
    """
    slots: list[Slots] = []
    digests: list[bytes] = []
    freed = 0
    while wanted is None or freed < wanted:
        source = space or tree.queue.smallest()
        run = source.leaves.smallest() if source else None
        if run is None:
            break
        top = max(run.start, run.marks[-2].end if len(run.marks) > 1 else 0)
        if wanted is not None:
            pages = -(-(wanted - freed) // tree.page_size)
            top = max(top, run.end - pages * tree.page_size)
        freed += run.end - top
        slots.append(_last_page_first(run.span.slots_between(top, run.end), tree.page_size))
        if tree.keeps_events:
            digests += reversed(run.digests[(top - run.start) // tree.page_size :])
        _cut(tree, run, top)
    tree.counts.evicted_tokens += freed
    return slots, digests


def _last_page_first(slots: Slots, page_size: int) -> Slots:
    pages = slots.reshape(-1, page_size)
    reversed_slots: Slots = pages[::-1].reshape(-1)
    return reversed_slots


def _cut(tree: Tree, run: Run, top: int) -> None:
    """Free the pages of ``run`` below ``top``; they are all or some of its last segment."""
    tree.undo.keep(run)
    tree.counts.total -= run.end - top
    gone = run.marks[-1]
    tree.undo.keep(gone)
    parent = run.parent
    assert parent is not None, "a root has no page to free"
    tree.show_less(run, top)
    if run.digests:
        kept = run.digests[: (top - run.start) // tree.page_size]
        tree.counts.digests -= len(run.digests) - len(kept)
        run.digests = kept
    if len(run.marks) > 1 and run.marks[-2].end == top:
        run.marks.pop()
        tree.counts.marks -= 1
        _fold(tree, gone, run)
        tree.offer(run)
    elif top > run.start:
        gone.end = top
        tree.offer(run)
    else:
        _remove(tree, run, parent)


def _fold(tree: Tree, gone: Mark, into: Run) -> None:
    """All pages of the segment of ``gone`` are free, and ``into`` ends right above them."""
    above = None if into.is_root else into.marks[-1]
    if above is not None:
        tree.undo.keep(above)
        above.fold(gone)
        tree.prune_above(into, len(into.marks) - 1)
    birth = gone.birth
    if above is None or above.birth is not birth:
        tree.end_birth(birth)
    elif birth.anchor is not into:
        tree.undo.keep(birth)
        birth.anchor = into


def _remove(tree: Tree, run: Run, parent: Run) -> None:
    """``run`` has no page left."""
    tree.undo.keep(parent)
    tree.counts.marks -= 1
    _fold(tree, run.marks[-1], parent)
    tree.detach(run, parent)
    if not parent.children:
        if parent.is_root:
            tree.remove_space(parent.space)
        else:
            tree.offer(parent)
    elif len(parent.children) == 1:
        (only,) = parent.children.values()
        tree.merge_upwards(only)
