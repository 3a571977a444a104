"""What the Cython tree remembers of a `PrefixKey`."""

from libc.stdint cimport int64_t, uint32_t

from .tree cimport Handle


cdef class Memo:
    cdef object array            # of the tokens, which nobody changes or moves
    cdef const uint32_t *tokens
    cdef int64_t count
    cdef int64_t cache           # number of the cache where it was found last; never a reference; 0: nowhere yet
    cdef Handle handle           # the page where that was


cdef Memo memo_of(object key)
cdef Memo memo_make(object key, object array, const uint32_t *tokens, int64_t count)
