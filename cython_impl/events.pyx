"""The queue of events. A record is made before the tree changes (that may fail) and queued with the change.

Lists are filled with ``append`` in all modules: the C of Cython 3.3 for a list comprehension drops the reference to an
element twice if the list cannot grow.
"""

from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc

from triradix.events import AllBlocksCleared, BlockRemoved, BlockStored

from .tree cimport Event, Tree


cdef Event *event_new(EventKind kind, int64_t count, int64_t tokens_count) noexcept nogil:
    """A record with room for so many hashes and tokens; NULL if memory is short."""
    cdef size_t size = sizeof(Event) + count * sizeof(int64_t) + tokens_count * sizeof(uint32_t)
    cdef Event *event = <Event *> malloc(size)
    if event == NULL:
        return NULL
    event.next = NULL
    event.kind = kind
    event.has_parent = False
    event.count = count
    event.tokens_count = tokens_count
    event.name = NULL
    event.hashes = <int64_t *> (event + 1)
    event.tokens = <uint32_t *> (event.hashes + count)
    return event


cdef void event_free(Event *event) noexcept:
    if event != NULL:
        Py_XDECREF(event.name)
        free(event)


cdef void event_queue(Tree *tree, Event *event) noexcept nogil:
    if tree.last_event == NULL:
        tree.first_event = event
    else:
        tree.last_event.next = event
    tree.last_event = event
    tree.event_bytes += sizeof(Event) + event.count * sizeof(int64_t) + event.tokens_count * sizeof(uint32_t)


cdef object event_object(const Event *event, object page_size, bint bigram):
    """The record as the dataclass that callers get."""
    cdef int64_t i
    cdef list hashes = []
    cdef list units = []
    for i in range(event.count):
        hashes.append(event.hashes[i])
    if event.kind == CLEARED:
        return AllBlocksCleared()
    if event.kind == REMOVED:
        return BlockRemoved(hashes)
    if bigram:
        for i in range(event.tokens_count - 1):
            units.append((event.tokens[i], event.tokens[i + 1]))
    else:
        for i in range(event.tokens_count):
            units.append(event.tokens[i])
    return BlockStored(
        hashes,
        event.parent_hash if event.has_parent else None,
        units,
        page_size,
        extra_key=<object> event.name if event.name != NULL else None,
    )
