"""Splitting a run in two. Nothing is copied: both show windows of the span that was there."""

from libc.stdint cimport int64_t, uint32_t

from .births cimport births_move
from .children cimport child_add, child_replace, hash_of_stored
from .marks cimport MOST_MARKS, mark_at
from .node cimport show
from .slab cimport slab_take
from .tree cimport Run, Tree, mark_of, run_at


cdef uint32_t split(Tree *tree, uint32_t run, int64_t depth) noexcept nogil:
    """Make a run of the pages down to ``depth``, and return it; ``run`` keeps its identity, and what lies below.

    Nothing is copied. A run, a mark and a child must be reserved.
    """
    cdef uint32_t made = slab_take(&tree.runs)
    cdef Run *lower = run_at(tree, run)
    cdef Run *upper = run_at(tree, made)
    cdef uint32_t last = mark_at(tree, lower, depth)
    cdef uint32_t first_below = mark_of(tree, last).next
    cdef uint32_t mark
    cdef int64_t pages = (depth - lower.start) // tree.page
    child_replace(tree, run, made)
    upper.space = lower.space
    upper.start = lower.start
    upper.end = depth
    upper.hashed = min(lower.hashed, pages)
    upper.locked_end = min(lower.locked_end, depth)
    upper.locked_children = lower.locked_end > depth
    upper.children = upper.child_xor = upper.heap_index = 0

    upper.first_mark = lower.first_mark
    upper.last_mark = last
    upper.marks = 0
    mark = upper.first_mark
    while mark != first_below:
        upper.marks += 1
        mark = mark_of(tree, mark).next
    births_move(tree, upper.first_mark, first_below, run, made)
    mark_of(tree, last).next = 0
    mark_of(tree, first_below).previous = 0
    lower.first_mark = first_below
    lower.marks -= upper.marks

    lower.span.live -= depth - lower.start
    show(tree, made, lower.span, lower.offset)
    lower.offset += depth - lower.start
    lower.start = depth
    lower.hashed -= upper.hashed
    lower.parent = made
    lower.hash = hash_of_stored(tree, run)
    child_add(tree, run)
    return made


cdef void limit_marks(Tree *tree, uint32_t run) noexcept nogil:
    """Split a run of too many marks in the middle of them. A run and a child must be reserved."""
    cdef Run *entry = run_at(tree, run)
    cdef uint32_t mark = entry.first_mark
    cdef uint32_t _i
    if entry.marks > MOST_MARKS:
        for _i in range(entry.marks // 2 - 1):
            mark = mark_of(tree, mark).next
        split(tree, run, mark_of(tree, mark).end)
