"""Locks of pages."""

from libc.stdint cimport int64_t, uint32_t

from .tree cimport Tree


cdef int64_t lock_page(Tree *tree, uint32_t run, int64_t depth) noexcept nogil
cdef int64_t unlock_page(Tree *tree, uint32_t run, int64_t depth) noexcept nogil
cdef int64_t deepest_lock(const Tree *tree, uint32_t run) noexcept nogil
