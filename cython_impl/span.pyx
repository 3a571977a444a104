"""Memory of spans, and the comparison of tokens."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from .hash_functions cimport DIGEST

cdef int64_t LONG_BLOCK = 1024
cdef int64_t SHORT_BLOCK = 64


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


cdef int64_t common_prefix(const uint32_t *left, const uint32_t *right, int64_t count) noexcept nogil:
    """How many leading tokens are equal: memcmp by blocks to find where, then 64 bits at a time."""
    cdef int64_t at = 0
    cdef uint64_t a, b
    while at + LONG_BLOCK <= count and memcmp(left + at, right + at, LONG_BLOCK * sizeof(uint32_t)) == 0:
        at += LONG_BLOCK
    while at + SHORT_BLOCK <= count and memcmp(left + at, right + at, SHORT_BLOCK * sizeof(uint32_t)) == 0:
        at += SHORT_BLOCK
    while at + 2 <= count:
        memcpy(&a, left + at, sizeof(a))
        memcpy(&b, right + at, sizeof(b))
        if a != b:
            return at + (left[at] == right[at])
        at += 2
    return at + (at < count and left[at] == right[at])
