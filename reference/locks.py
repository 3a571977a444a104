"""Locks: a lock of a page holds every page up to the root.

It is counted at the page's mark alone. A run knows down to where it is locked and how many of its children are, so a
lock or a release walks up only while pages change from free to locked or back: O(runs that change), not O(depth).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triradix.reference import marks as marks_
from triradix.reference.walk import mark_at, prune_above

if TYPE_CHECKING:
    from triradix.reference.node import Run
    from triradix.reference.tree import Tree


def lock(tree: Tree, run: Run, depth: int) -> int:
    """Lock the page of ``run`` that ends at ``depth``; returns the units that became protected."""
    tree.begin()
    mark = mark_at(tree, run, depth)
    mark.locks += 1
    run = run.holder(depth)
    protected = 0
    while run.locked_end < depth:
        locked_before = run.locked_end > run.start
        protected += depth - run.locked_end
        run.locked_end = depth
        if locked_before or run.parent is None or run.parent.is_root:
            break
        run = run.parent
        tree.undo.keep(run)
        run.locked_children += 1
        depth = run.end
    tree.counts.protected += protected
    return protected


def unlock(tree: Tree, run: Run, depth: int) -> int:
    """Take back one lock of that page; returns the units that became evictable."""
    at = marks_.segment(run.marks, depth)
    mark = run.marks[at]
    if mark.end != depth or not mark.locks:
        raise ValueError("no lock of this node's page is left to take back")
    tree.begin()
    tree.undo.keep(run)
    tree.undo.keep(mark)
    mark.locks -= 1
    if not mark.locks:
        prune_above(tree, run, min(at + 1, len(run.marks) - 1))
    freed = 0
    while not run.locked_children:
        locked_end = next((mark.end for mark in reversed(run.marks) if mark.locks), run.start)
        if locked_end == run.locked_end:
            break
        freed += run.locked_end - locked_end
        run.locked_end = locked_end
        tree.offer(run)
        if locked_end > run.start or run.parent is None or run.parent.is_root:
            break
        run = run.parent
        tree.undo.keep(run)
        run.locked_children -= 1
    tree.counts.protected -= freed
    return freed
