"""Paths: following a key down, writing where a call ended, reading the slots above."""

from libc.stdint cimport int64_t, uint32_t

from .tree cimport Handle, Place, Tree


cdef Place walk(const Tree *tree, Place place, const uint32_t *tokens, int64_t units) noexcept nogil
cdef int reserve_touch(Tree *tree) noexcept nogil
cdef void touch(Tree *tree, Place place, int64_t now, int64_t priority, int64_t hits) noexcept nogil
cdef void gather(const Tree *tree, Place place, int64_t start, int64_t *slots) noexcept nogil
cdef uint32_t birth_of(const Tree *tree, Place place) noexcept nogil
cdef int64_t units_of(const Tree *tree, int64_t tokens) noexcept nogil
cdef int match_pages(Tree *tree, Place start, const uint32_t *tokens, int64_t units, Handle *handle) noexcept nogil
