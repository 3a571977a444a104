"""Child lookup: one open-addressing table for the whole tree."""

from libc.stdint cimport uint32_t, uint64_t

from .tree cimport Tree


cdef int children_reserve(Tree *tree, uint64_t count) noexcept nogil
cdef void children_free(Tree *tree) noexcept nogil
cdef uint64_t page_hash(const Tree *tree, const uint32_t *tokens) noexcept nogil
cdef uint32_t child_find(const Tree *tree, uint32_t parent, const uint32_t *tokens) noexcept nogil
cdef void child_add(Tree *tree, uint32_t child) noexcept nogil
cdef void child_remove(Tree *tree, uint32_t child) noexcept nogil
cdef bint child_is_listed(const Tree *tree, uint32_t child) noexcept nogil
