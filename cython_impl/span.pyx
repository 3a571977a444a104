"""Memory of spans."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from .hash_functions cimport DIGEST


cdef Span *span_new(int64_t size, int64_t overlap) noexcept nogil:
    """Room for ``size`` units, contents undefined; NULL if memory is short. One block, so one cache miss less."""
    cdef Span *span = <Span *> malloc(sizeof(Span) + size * sizeof(int64_t) + (size + overlap) * sizeof(uint32_t))
    if span == NULL:
        return NULL
    span.size = size
    span.live = 0
    span.first_run = 0
    span.slots = <int64_t *> (span + 1)
    span.tokens = <uint32_t *> (span.slots + size)
    span.digests = NULL
    return span


cdef void span_free(Span *span) noexcept nogil:
    if span != NULL:
        free(span.digests)
        free(span)


cdef int64_t span_bytes(const Span *span, int64_t page, int64_t overlap) noexcept nogil:
    cdef int64_t total = sizeof(Span) + span.size * sizeof(int64_t) + (span.size + overlap) * sizeof(uint32_t)
    if span.digests != NULL:
        total += span.size // page * DIGEST
    return total


cdef int span_make_digests(Span *span, int64_t page) noexcept nogil:
    """Room for the digest of every page; -1 if memory is short."""
    if span.digests == NULL:
        span.digests = <uint8_t *> malloc(span.size // page * DIGEST)
        if span.digests == NULL:
            return -1
    return 0
