"""Heaps whose entries can be moved and taken out from the middle."""

from libc.stdint cimport int64_t, uint32_t

from .tree cimport Heap, HeapEntry, Tree


cdef inline bint before(int64_t high, int64_t low, int64_t other_high, int64_t other_low) noexcept nogil:
    """Whether a rank is smaller than another. No two candidates have the same: each tick belongs to one path."""
    return high < other_high or (high == other_high and low < other_low)


cdef int heap_reserve(Tree *tree, Heap *heap, uint32_t size) noexcept nogil
cdef void heap_free(Tree *tree, Heap *heap) noexcept nogil
cdef void heap_add(Tree *tree, Heap *heap, HeapEntry entry) noexcept nogil
cdef void heap_set(Tree *tree, Heap *heap, uint32_t at, HeapEntry entry) noexcept nogil
cdef void heap_remove(Tree *tree, Heap *heap, uint32_t at) noexcept nogil
