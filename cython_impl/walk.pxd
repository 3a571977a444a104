"""Paths: following a key down, writing where a call ended, reading the slots above."""

from libc.stdint cimport int64_t

from .key cimport Key
from .tree cimport Handle, Place, Tree


cdef enum Answer:        # of what may fail; if it does, nothing has changed
    DONE
    NO_MEMORY
    OUTSIDE              # a number of the key is no token
    RACED                # another thread wrote to the key meanwhile: copy it, then try again


cdef Place walk(const Tree *tree, Place place, Key key, int64_t units) noexcept nogil
cdef Place walk_on(const Tree *tree, Place start, const Handle *known, Key key, int64_t units) noexcept nogil
cdef int reserve_touch(Tree *tree) noexcept nogil
cdef void touch(Tree *tree, Place place, int64_t now, int64_t priority, int64_t hits) noexcept nogil
cdef void gather(const Tree *tree, Place place, int64_t start, int64_t *slots) noexcept nogil
cdef void name_page(const Tree *tree, Place place, Handle *handle) noexcept nogil
cdef int64_t units_of(const Tree *tree, int64_t tokens) noexcept nogil
cdef Place find_place(const Tree *tree, Place start, const Handle *known, Key key) noexcept nogil
cdef Place find_match(
    const Tree *tree, Place start, const Handle *known, Key key, Handle *handle
) noexcept nogil
cdef int note_match(Tree *tree, Place place, int64_t units, int64_t found) noexcept nogil
cdef void merge_if_due(Tree *tree) noexcept nogil
cdef Answer match_pages(
    Tree *tree, Place start, const Handle *known, Key key, Handle *handle
) noexcept nogil
