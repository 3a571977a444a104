"""Memory of spans. Slots that an allocator handed out in a row take no more than the first of them does."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from .compare cimport are_consecutive, are_tokens, copy_tokens, widen, widen_back, write_steps
from .hash_functions cimport DIGEST
from .key cimport Key, key_of


cdef int64_t main_bytes(int64_t size, int64_t overlap, uint32_t form) noexcept nogil:
    return sizeof(Span) + slot_bytes(size, form) + (size + overlap) * 4


cdef Span *span_new(int64_t size, int64_t overlap, uint32_t form) noexcept nogil:
    """Room for ``size`` units, contents undefined; NULL if memory is short."""
    cdef Span *span = <Span *> malloc(main_bytes(size, overlap, form))
    if span == NULL:
        return NULL
    span.size = <uint32_t> size
    span.live = 0
    span.first_run = 0
    span.form = form
    span.digests = NULL
    return span


cdef void span_free(Span *span) noexcept nogil:
    if span != NULL:
        free(span.digests)
        free(span)


cdef int64_t span_bytes(const Span *span, int64_t page, int64_t overlap) noexcept nogil:
    cdef int64_t total = main_bytes(span.size, overlap, span.form)
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


cdef uint32_t form_of(const int64_t *slots, int64_t count) noexcept nogil:
    """The smallest that can keep them."""
    if are_consecutive(slots, count):
        return CONSECUTIVE
    return NARROW if are_tokens(as_key(slots, count)) else WIDE


cdef int64_t first_slot(const Span *span, int64_t at) noexcept nogil:
    """That of unit ``at``, of consecutive ones. (After the largest int64 comes the smallest.)"""
    return <int64_t> ((<const uint64_t *> slots_of(span))[0] + <uint64_t> at)


cdef bint are_narrow(const Span *span, int64_t at, int64_t count) noexcept nogil:
    """Whether none of those slots needs more than 4 bytes."""
    cdef int64_t first
    if span.form != CONSECUTIVE:
        return span.form == NARROW
    first = first_slot(span, at)
    return 0 <= first and first <= <int64_t> 0xFFFFFFFF - (count - 1)


cdef void write_slots(Span *span, const int64_t *slots, int64_t count) noexcept nogil:
    """The first ``count`` slots. Whoever writes to ``slots`` meanwhile may find some of them cut to 32 bits."""
    if span.form == CONSECUTIVE:
        (<int64_t *> slots_of(span))[0] = slots[0]
    elif span.form == WIDE:
        memcpy(slots_of(span), slots, count * 8)
    else:
        copy_tokens(as_key(slots, count), <uint32_t *> slots_of(span), count)


cdef void read_slots(const Span *span, int64_t at, int64_t count, int64_t *slots) noexcept nogil:
    """``count`` slots from unit ``at`` on."""
    if span.form == CONSECUTIVE:
        write_steps(first_slot(span, at), 1, slots, count)
    elif span.form == WIDE:
        memcpy(slots, slots_of(span) + at * 8, count * 8)
    else:
        widen(<const uint32_t *> slots_of(span) + at, slots, count)


cdef void read_slots_back(const Span *span, int64_t at, int64_t count, int64_t *slots) noexcept nogil:
    """The same, the last of them first."""
    cdef const int64_t *wide
    cdef int64_t i
    if span.form == CONSECUTIVE:
        write_steps(first_slot(span, at + count - 1), -1, slots, count)
    elif span.form == WIDE:
        wide = <const int64_t *> slots_of(span) + at
        for i in range(count):
            slots[i] = wide[count - 1 - i]
    else:
        widen_back(<const uint32_t *> slots_of(span) + at, slots, count)


cdef void copy_slots(const Span *source, int64_t at, int64_t count, Span *target, int64_t to) noexcept nogil:
    """From one span to another, whose form can keep them."""
    cdef uint32_t first
    cdef uint32_t *narrow
    cdef int64_t i
    if target.form == CONSECUTIVE:
        if to == 0:
            (<int64_t *> slots_of(target))[0] = first_slot(source, at)
    elif target.form == WIDE:
        read_slots(source, at, count, <int64_t *> slots_of(target) + to)
    elif source.form == CONSECUTIVE:
        first = <uint32_t> first_slot(source, at)
        narrow = <uint32_t *> slots_of(target) + to
        for i in range(count):
            narrow[i] = first + <uint32_t> i
    else:
        memcpy(slots_of(target) + to * 4, slots_of(source) + at * 4, count * 4)
