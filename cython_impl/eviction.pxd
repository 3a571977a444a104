"""Eviction of pages by rank."""

from libc.stdint cimport int64_t, uint32_t

from .tree cimport Tree


cdef int64_t evict_pages(Tree *tree, uint32_t space, int64_t wanted, int64_t *slots, int64_t *hashes) noexcept nogil
