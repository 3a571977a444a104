"""KV events: recorded as C structs while the tree changes, made into objects when they are taken."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t

from .tree cimport Event, Tree

cdef enum EventKind:
    STORED, REMOVED, CLEARED


cdef Event *event_new(EventKind kind, int64_t count, int64_t tokens_count) noexcept nogil
cdef void event_free(Event *event) noexcept
cdef void event_queue(Tree *tree, Event *event) noexcept nogil
cdef object event_object(const Event *event, object page_size, bint bigram)
