"""Child lookup: one open-addressing table for the whole tree."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from .key cimport Key
from .tree cimport Run, Tree


cdef inline uint32_t only_child(const Run *run) noexcept nogil:
    return run.child_xor if run.children == 1 else 0


cdef int children_reserve(Tree *tree, uint64_t count) noexcept nogil
cdef void children_free(Tree *tree) noexcept nogil
cdef uint32_t hash_of_stored(const Tree *tree, uint32_t run) noexcept nogil
cdef uint32_t child_find(const Tree *tree, uint32_t parent, Key key, int64_t *common) noexcept nogil
cdef uint32_t child_ahead(const Tree *tree, uint32_t parent, Key key) noexcept nogil
cdef uint32_t child_guess(const Tree *tree, uint32_t parent, uint32_t hash) noexcept nogil
cdef void entry_ahead(const Tree *tree, uint32_t child) noexcept nogil
cdef void child_add(Tree *tree, uint32_t child) noexcept nogil
cdef void child_remove(Tree *tree, uint32_t child) noexcept nogil
cdef void child_replace(Tree *tree, uint32_t old, uint32_t new) noexcept nogil
cdef bint child_is_listed(const Tree *tree, uint32_t child) noexcept nogil
