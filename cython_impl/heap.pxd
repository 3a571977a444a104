"""Candidates for eviction: a heap of them for each space, and a heap of the spaces."""

from libc.stdint cimport int64_t, uint32_t

from .tree cimport Heap, Run, Tree


cdef int heap_reserve(Tree *tree, Heap *heap, uint32_t size) noexcept nogil
cdef void heap_free(Tree *tree, Heap *heap) noexcept nogil
cdef bint is_candidate(const Run *run) noexcept nogil
cdef void rank_of(const Tree *tree, const Run *run, int64_t *high, int64_t *low) noexcept nogil
cdef void refresh_candidate(Tree *tree, uint32_t run) noexcept nogil
