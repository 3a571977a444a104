"""What the tree notes for `triradix.log`: nothing unless asked, and then after the operation."""

from libc.stdint cimport int64_t, uint32_t

from .spaces cimport Forest
from .tree cimport Notes, Tree

cdef enum:    # in the order of triradix.log.KINDS
    RESET = 1
    SPLIT = 2
    MERGE = 4
    EVICT = 8
    COPY = 16
    MADE = 32
    GONE = 64
    SHORT = 128
    BROKEN = 256    # nothing in this tree tells of an internal error, which would be 512

cdef uint32_t listening    # the bits of what is to be noted


cdef void keep_note(Tree *tree, uint32_t kind, int64_t first, int64_t second) noexcept nogil
cdef void notes_free(Notes *noted) noexcept nogil
cdef object hand_over(Forest forest)


cdef inline void note(Tree *tree, uint32_t kind, int64_t first, int64_t second) noexcept nogil:
    """Where something happens that may be told."""
    if listening & kind:
        keep_note(tree, kind, first, second)
