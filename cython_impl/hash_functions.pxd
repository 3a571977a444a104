"""SHA-256 for the digests of pages."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef enum:
    DIGEST = 32    # bytes of a SHA-256 digest


cdef void page_digest(
    const uint8_t *previous, int64_t previous_size, const uint32_t *tokens, int64_t page, int64_t overlap,
    uint8_t *digest,
) noexcept nogil
cdef int64_t event_hash(const uint8_t *digest) noexcept nogil
cdef int namespace_seed(object pair, uint8_t *seed) except -1
