"""The candidates for eviction of each space, in the order of their ranks."""

from libc.stdint cimport uint32_t

from .tree cimport HeapEntry, Tree

cdef enum:
    # `Detail.before` of a run that is no candidate, and of one in the heap (`after` is its place there). Else both are
    # its neighbours in the list, 0 at its ends.
    UNQUEUED = 0xFFFFFFFF
    IN_HEAP = 0xFFFFFFFE


cdef bint is_candidate(const Tree *tree, uint32_t run) noexcept nogil
cdef HeapEntry rank_of(const Tree *tree, uint32_t run) noexcept nogil
cdef HeapEntry first_candidate(const Tree *tree, uint32_t space) noexcept nogil
cdef void refresh_candidate(Tree *tree, uint32_t run) noexcept nogil
