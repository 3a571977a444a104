"""Memory of spans. Slots take 4 bytes where all of a span fit into them without a sign."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from .compare cimport are_tokens, copy_tokens, widen
from .hash_functions cimport DIGEST
from .key cimport Key, key_of


cdef int64_t main_bytes(int64_t size, int64_t overlap, bint wide) noexcept nogil:
    return sizeof(Span) + size * (8 if wide else 4) + (size + overlap) * 4


cdef Span *span_new(int64_t size, int64_t overlap, bint wide) noexcept nogil:
    """Room for ``size`` units, contents undefined; NULL if memory is short."""
    cdef Span *span = <Span *> malloc(main_bytes(size, overlap, wide))
    if span == NULL:
        return NULL
    span.size = <uint32_t> size
    span.live = 0
    span.first_run = 0
    span.wide = wide
    span.digests = NULL
    return span


cdef void span_free(Span *span) noexcept nogil:
    if span != NULL:
        free(span.digests)
        free(span)


cdef int64_t span_bytes(const Span *span, int64_t page, int64_t overlap) noexcept nogil:
    cdef int64_t total = main_bytes(span.size, overlap, span.wide)
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


cdef inline Key as_key(const void *numbers, int64_t count) noexcept nogil:
    """Slots in the clothes of a key: the loops over numbers are the same."""
    return key_of(numbers, count, True)


cdef bint need_wide(const int64_t *slots, int64_t count) noexcept nogil:
    """Whether any of the slots needs more than 4 bytes."""
    return not are_tokens(as_key(slots, count))


cdef void write_slots(Span *span, const int64_t *slots, int64_t count) noexcept nogil:
    """The first ``count`` slots. Whoever writes to ``slots`` meanwhile may find some of them cut to 32 bits."""
    if span.wide:
        memcpy(slots_of(span), slots, count * 8)
    else:
        copy_tokens(as_key(slots, count), <uint32_t *> slots_of(span), count)


cdef void read_slots(const Span *span, int64_t at, int64_t count, int64_t *slots) noexcept nogil:
    """``count`` slots from unit ``at`` on."""
    if span.wide:
        memcpy(slots, slots_of(span) + at * 8, count * 8)
    else:
        widen(<const uint32_t *> slots_of(span) + at, slots, count)


cdef void copy_slots(const Span *source, int64_t at, int64_t count, Span *target, int64_t to) noexcept nogil:
    """From one span to another, which is wide if the first one is."""
    if target.wide:
        read_slots(source, at, count, <int64_t *> slots_of(target) + to)
    else:
        memcpy(slots_of(target) + to * 4, slots_of(source) + at * 4, count * 4)
