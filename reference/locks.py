"""Locks: a lock of a page holds every page up to the root.

It is counted at the page's mark alone. A run knows down to where it is locked and how many of its children are, so a
lock or a release walks up only while pages change from free to locked or back: O(runs that change), not O(depth).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triradix.reference.merge import merge_upwards
from triradix.reference.split import limit_marks
from triradix.reference.walk import mark_at, prune_above

if TYPE_CHECKING:
    from triradix.reference.node import Run
    from triradix.reference.tree import Tree


def lock(tree: Tree, run: Run, depth: int) -> int:
    """Lock the page of ``run`` that ends at ``depth``; returns the units that became protected."""
    mark_at(tree, run, depth).locks += 1
    if run.inner:
        limit_marks(tree, run)
        run = run.holder(depth)
    protected = 0
    while run.locked_end < depth:
        tree.undo.append((setattr, run, "locked_end", run.locked_end))
        locked_before = run.locked_end > run.start
        protected += depth - run.locked_end
        run.locked_end = depth
        if locked_before or run.parent is None or not run.start:
            break
        run = run.parent
        tree.undo.append((setattr, run, "locked_children", run.locked_children))
        run.locked_children += 1
        depth = run.end
    tree.undo.append((setattr, tree.counts, "protected", tree.counts.protected))
    tree.counts.protected += protected
    return protected


def unlock(tree: Tree, run: Run, depth: int) -> int:
    """Take back one lock of that page; returns the units that became evictable."""
    mark = run.mark_of(depth)
    if mark.end != depth or not mark.locks:
        raise ValueError("no lock of this node's page is left to take back")
    tree.undo.append((setattr, mark, "locks", mark.locks))
    mark.locks -= 1
    lowest, before = run, run.inner
    if run.inner and not mark.locks:
        prune_above(tree, run, run.mark_of(depth + 1))
    freed = 0
    while not run.locked_children:
        locked_end = _deepest_lock(run)
        if locked_end == run.locked_end:
            break
        freed += run.locked_end - locked_end
        tree.undo.append((setattr, run, "locked_end", run.locked_end))
        run.locked_end = locked_end
        if run.queued is None:
            tree.offer(run)
        if locked_end > run.start or run.parent is None or not run.start:
            break
        run = run.parent
        tree.undo.append((setattr, run, "locked_children", run.locked_children))
        run.locked_children -= 1
    tree.undo.append((setattr, tree.counts, "protected", tree.counts.protected))
    tree.counts.protected -= freed
    if len(lowest.inner) < len(before):  # the marks of locks may have kept a path in pieces
        merge_upwards(tree, lowest.only_child or lowest)
    return freed


def _deepest_lock(run: Run) -> int:
    """Where the locked pages of a run without locked children end."""
    if run.locks:
        return run.end
    if not run.inner:
        return run.start
    return next((mark.end for mark in reversed(run.inner) if mark.locks), run.start)
