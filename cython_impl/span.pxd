"""Spans: where the tokens and the slots of runs stand. Several runs may show windows of one span."""

from libc.stdint cimport int64_t, uint8_t, uint32_t


cdef struct Span:
    int64_t size         # units
    int64_t live         # units that windows show
    uint32_t first_run   # list of the runs that show a window of it, linked in the runs
    int64_t *slots       # size of them
    uint32_t *tokens     # size + overlap of them
    uint8_t *digests     # 32 bytes a page, NULL until asked for; which of them are computed the runs know


cdef Span *span_new(int64_t size, int64_t overlap) noexcept nogil
cdef void span_free(Span *span) noexcept nogil
cdef int64_t span_bytes(const Span *span, int64_t page, int64_t overlap) noexcept nogil
cdef int span_make_digests(Span *span, int64_t page) noexcept nogil
