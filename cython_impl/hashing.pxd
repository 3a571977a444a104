"""Digests of pages, kept in the spans once they were asked for."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from .span cimport Span
from .tree cimport Place, Tree


cdef void fill_digests(
    const Tree *tree, Span *span, int64_t first, int64_t end, const uint8_t *previous, int64_t previous_size
) noexcept nogil
cdef const uint8_t *digest_of(const Tree *tree, Place place) noexcept nogil
cdef int path_digests(Tree *tree, Place place, const uint8_t *seed, int64_t seed_size, uint8_t *digests) noexcept nogil
