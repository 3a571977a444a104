"""Locks are counted at the mark of their page. The locked pages of a run are a prefix of it, so one depth says which.

A lock walks up only while runs were without locked pages, a release only while they are left without: the cost is that
of the runs that change.
"""

from libc.stdint cimport int64_t, uint32_t

from .heap cimport refresh_candidate
from .marks cimport mark_at, marks_prune, segment_at
from .split cimport limit_marks
from .tree cimport Mark, Run, Tree, has_locked_pages, mark_of, run_at, space_at


cdef int64_t deepest_lock(const Tree *tree, uint32_t run) noexcept nogil:
    """The depth to which locks reach in a run; its start if there is none."""
    cdef const Run *entry = run_at(tree, run)
    cdef uint32_t mark = entry.last_mark
    if entry.locked_children:
        return entry.end
    while mark and mark_of(tree, mark).locks == 0:
        mark = mark_of(tree, mark).previous
    return mark_of(tree, mark).end if mark else entry.start


cdef int64_t lock_page(Tree *tree, uint32_t run, int64_t depth) noexcept nogil:
    """Lock the page and those above it: the units that became locked. A mark, a run and a child must be reserved."""
    cdef int64_t locked = 0
    cdef int64_t to_depth = depth
    cdef uint32_t at = run
    cdef Run *entry = run_at(tree, run)
    cdef bint had_locks
    mark_of(tree, mark_at(tree, entry, depth)).locks += 1
    while entry.parent and entry.locked_end < to_depth:
        had_locks = has_locked_pages(entry)
        locked += to_depth - max(entry.locked_end, entry.start)
        entry.locked_end = to_depth
        refresh_candidate(tree, at)
        if had_locks:
            break
        at = entry.parent
        entry = run_at(tree, at)
        entry.locked_children += 1
        to_depth = entry.end
    tree.locked += locked
    space_at(tree, run_at(tree, run).space).locked += locked
    limit_marks(tree, run)
    return locked


cdef int64_t unlock_page(Tree *tree, uint32_t run, int64_t depth) noexcept nogil:
    """Take one lock of the page back: the units that became free, -1 if it has none.

    A place among the candidates must be reserved.
    """
    cdef int64_t released = 0
    cdef int64_t left
    cdef uint32_t at = run
    cdef Run *entry = run_at(tree, run)
    cdef Mark *mark = mark_of(tree, segment_at(tree, entry, depth))
    if mark.end != depth or mark.locks == 0:
        return -1
    mark.locks -= 1
    if mark.locks:
        return 0
    while entry.parent:
        left = deepest_lock(tree, at)
        if left >= entry.locked_end:
            break
        released += entry.locked_end - left
        entry.locked_end = left
        refresh_candidate(tree, at)
        if left > entry.start:
            break
        at = entry.parent
        entry = run_at(tree, at)
        entry.locked_children -= 1
        if entry.locked_children:
            break
    entry = run_at(tree, run)
    marks_prune(tree, entry, mark_of(tree, entry.last_mark).previous, entry.last_mark)
    tree.locked -= released
    space_at(tree, entry.space).locked -= released
    return released
