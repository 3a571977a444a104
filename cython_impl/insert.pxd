"""Inserting the pages of a key."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from .key cimport Key
from .tree cimport Handle, Place, Tree
from .walk cimport Answer


cdef struct Insertion:
    # What is to be inserted.
    Key key
    const Handle *known        # a page that the key is known to begin with (then it begins at a root), or NULL
    const int64_t *slots
    int64_t units              # whole pages
    int64_t priority
    int64_t inserted_len
    const uint8_t *seed        # before the first page of the namespace; with events on
    int64_t seed_size
    # What came of it.
    int64_t prefix             # depth of the deepest page that was there
    uint32_t birth             # of the last page
    int64_t creation


cdef Answer insert_pages(Tree *tree, Place start, Insertion *insertion) noexcept nogil
