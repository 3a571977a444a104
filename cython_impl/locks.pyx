"""Locks are counted at the mark of their page. The locked pages of a run are a prefix of it, so one depth says which.

A lock walks up only while runs were without locked pages, a release only while they are left without: the cost is that
of the runs that change.
"""

from libc.stdint cimport UINT32_MAX, int64_t, uint32_t

from .marks cimport mark_at, marks_prune, segment_at
from .queue cimport refresh_candidate
from .split cimport limit_marks
from .tree cimport Detail, Mark, Run, Tree, detail_of, has_locked_pages, mark_of, run_at, space_at


cdef int64_t deepest_lock(const Tree *tree, uint32_t run) noexcept nogil:
    """The depth to which locks reach in a run; its start if there is none."""
    cdef const Run *entry = run_at(tree, run)
    cdef uint32_t mark = entry.marks
    if detail_of(tree, run).locked_children:
        return entry.end
    while mark and mark_of(tree, mark).locks == 0:
        mark = mark_of(tree, mark).above
    return mark_of(tree, mark).end if mark else entry.start


cdef int64_t lock_page(Tree *tree, uint32_t run, int64_t depth) noexcept nogil:
    """Lock the page and those above it: the units that became locked; -1 if it has as many locks as can be counted.

    A mark, a run and a child must be reserved.
    """
    cdef int64_t locked = 0
    cdef uint32_t to_depth = <uint32_t> depth
    cdef uint32_t at = run
    cdef Run *entry = run_at(tree, run)
    cdef Detail *detail = detail_of(tree, run)
    cdef Mark *mark = mark_of(tree, mark_at(tree, run, depth))
    cdef bint had_locks
    if mark.locks == UINT32_MAX:
        return -1
    mark.locks += 1
    while entry.parent and detail.locked_end < to_depth:
        had_locks = has_locked_pages(tree, at)
        locked += to_depth - max(detail.locked_end, entry.start)
        detail.locked_end = to_depth
        if entry.children == 0:
            refresh_candidate(tree, at)
        if had_locks:
            break
        at = entry.parent
        to_depth = entry.start
        entry = run_at(tree, at)
        detail = detail_of(tree, at)
        detail.locked_children += 1
    tree.locked += locked
    space_at(tree, detail_of(tree, run).space).locked += locked
    limit_marks(tree, run)
    return locked


cdef int64_t unlock_page(Tree *tree, uint32_t run, int64_t depth) noexcept nogil:
    """Take one lock of the page back: the units that became free, -1 if it has none."""
    cdef int64_t released = 0
    cdef uint32_t left, below
    cdef uint32_t at = run
    cdef uint32_t locked = segment_at(tree, run, depth)
    cdef Run *entry = run_at(tree, run)
    cdef Detail *detail = detail_of(tree, run)
    cdef Mark *mark = mark_of(tree, locked)
    if mark.end != depth or mark.locks == 0:
        return -1
    mark.locks -= 1
    if mark.locks:
        return 0
    while entry.parent:
        left = <uint32_t> deepest_lock(tree, at)
        if left >= detail.locked_end:
            break
        released += detail.locked_end - left
        detail.locked_end = left
        if entry.children == 0:
            refresh_candidate(tree, at)
        if left > entry.start:
            break
        at = entry.parent
        entry = run_at(tree, at)
        detail = detail_of(tree, at)
        detail.locked_children -= 1
        if detail.locked_children:
            break
    # Without its lock the mark may say no more than the one below it.
    below = run_at(tree, run).marks
    while below != locked and mark_of(tree, below).above != locked:
        below = mark_of(tree, below).above
    marks_prune(tree, run, below)
    tree.locked -= released
    space_at(tree, detail_of(tree, run).space).locked -= released
    return released
