"""Eviction: whose last page goes next, and taking it.

Only the last page of a run without children can go, and all pages of a run's last segment have the same rank, while
ranks of different leaves differ. So eviction takes a whole segment, or as many of its pages as are wanted, at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triradix.keys import Slots
from triradix.reference.log import EVICT, SHORT, note
from triradix.reference.marks import Mark
from triradix.reference.merge import merge_upwards
from triradix.reference.walk import prune_above

if TYPE_CHECKING:
    from triradix.reference.node import Run
    from triradix.reference.spaces import Space
    from triradix.reference.tree import Tree


ALL = 2**63 - 1
"""Who asks for so many wants all that can go."""


def evict(tree: Tree, wanted: int | None, space: Space | None) -> tuple[list[Slots], list[bytes]]:
    """Free pages, of ``space`` or of any, until ``wanted`` units are free (None: all that can go).

    Returns the slots, and with events on the digests of the pages, both in the order of eviction.
    O(freed + segments · log leaves).
    """
    tree.undo.keep(tree.counts)
    slots: list[Slots] = []
    digests: list[bytes] = []
    freed = 0
    while wanted is None or freed < wanted:
        source = space or tree.queue.smallest()
        run = source.leaves.smallest() if source else None
        if run is None:
            break
        top = run.segment_start()
        if wanted is not None:
            pages = -(-(wanted - freed) // tree.page_size)
            top = max(top, run.end - pages * tree.page_size)
        freed += run.end - top
        slots.append(_last_page_first(run.span.slots_between(top, run.end), tree.page_size))
        if tree.keeps_events:
            digests += reversed(run.digests[(top - run.start) // tree.page_size :])
        _cut(tree, run, top)
    tree.counts.evicted_tokens += freed
    if freed:
        note(tree.undo, EVICT, freed, tree.counts.total)
    if wanted is not None and freed < wanted < ALL and (tree.counts.total if space is None else space.root.children):
        note(tree.undo, SHORT, freed, wanted)
    return slots, digests


def _last_page_first(slots: Slots, page_size: int) -> Slots:
    pages = slots.reshape(-1, page_size)
    reversed_slots: Slots = pages[::-1].reshape(-1)
    return reversed_slots


def _cut(tree: Tree, run: Run, top: int) -> None:
    """Free the pages of ``run`` below ``top``; they are all or some of its last segment."""
    tree.undo.keep(run)
    tree.counts.total -= run.end - top
    parent = run.parent
    assert parent is not None, "a root has no page to free"
    if run.reads is not None:
        run.last = run.last_at(top)
    tree.show_less(run, top)
    if run.digests:
        kept = run.digests[: (top - run.start) // tree.page_size]
        tree.counts.digests -= len(run.digests) - len(kept)
        run.digests = kept
    if run.inner and run.inner[-1].end == top:
        gone = run.copy()
        run.say(run.inner[-1].said())
        run.inner = run.inner[:-1]
        tree.counts.marks -= 1
        _fold(tree, gone, run.last, run)
        tree.offer(run)
    elif top > run.start:
        tree.offer(run)
    else:
        _remove(tree, run, parent)


def _fold(tree: Tree, gone: Mark, last: int, into: Run) -> None:
    """All pages that ``gone`` closed are free; they were last used at ``last``.

    ``into``, which is kept for undo, ends right above them.
    """
    if not into.is_root:
        into.fold(gone)
        into.last = max(into.last, last)
        prune_above(tree, into, into)
    birth = gone.birth
    if into.is_root or into.birth != birth:
        tree.end_birth(birth)
    elif tree.anchors[birth] is not into:
        tree.undo.keep_entry(tree.anchors, birth)
        tree.anchors[birth] = into


def _remove(tree: Tree, run: Run, parent: Run) -> None:
    """``run`` has no page left."""
    tree.undo.keep(parent)
    _fold(tree, run, run.last, parent)
    tree.detach(run, parent)
    if not parent.children:
        if parent.is_root:
            tree.remove_space(parent.space)
        else:
            tree.offer(parent)
    elif len(parent.children) == 1:
        merge_upwards(tree, parent.only_child or parent)
