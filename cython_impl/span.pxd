"""Spans: where the tokens and the slots of runs stand. Several runs may show windows of one span."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from .key cimport Key


cdef enum:               # how the slots of a span are stored
    CONSECUTIVE          # each is one more than the one before: only the first, in 8 bytes
    NARROW               # 4 bytes each, without a sign
    WIDE                 # 8 bytes each


cdef struct Span:        # in front of its slots; the tokens follow those
    uint32_t size        # units: so many slots, and tokens with the overlap
    uint32_t live        # units that windows show
    uint32_t first_run   # list of the runs that show a window of it, linked in the runs
    uint32_t form        # of its slots
    uint8_t *digests     # 32 bytes a page, NULL until asked for; which of them are computed the runs know


cdef inline char *slots_of(const Span *span) noexcept nogil:
    return <char *> (span + 1)


cdef inline int64_t slot_size(const Span *span) noexcept nogil:
    """What each takes where each is stored, else 0."""
    return 0 if span.form == CONSECUTIVE else 8 if span.form == WIDE else 4


cdef inline int64_t slot_bytes(int64_t size, uint32_t form) noexcept nogil:
    return 8 if form == CONSECUTIVE else size * (8 if form == WIDE else 4)


cdef inline uint32_t *tokens_of(const Span *span) noexcept nogil:
    return <uint32_t *> (slots_of(span) + slot_bytes(span.size, span.form))


cdef Span *span_new(int64_t size, int64_t overlap, uint32_t form) noexcept nogil
cdef void span_free(Span *span) noexcept nogil
cdef int64_t span_bytes(const Span *span, int64_t page, int64_t overlap) noexcept nogil
cdef int span_make_digests(Span *span, int64_t page) noexcept nogil
cdef uint32_t form_of(const int64_t *slots, int64_t count) noexcept nogil
cdef int64_t first_slot(const Span *span, int64_t at) noexcept nogil
cdef bint are_narrow(const Span *span, int64_t at, int64_t count) noexcept nogil
cdef void write_slots(Span *span, const int64_t *slots, int64_t count) noexcept nogil
cdef void read_slots(const Span *span, int64_t at, int64_t count, int64_t *slots) noexcept nogil
cdef void read_slots_back(const Span *span, int64_t at, int64_t count, int64_t *slots) noexcept nogil
cdef void copy_slots(const Span *source, int64_t at, int64_t count, Span *target, int64_t to) noexcept nogil
