"""Asking for memory before it is needed."""

from libc.stdint cimport uint32_t

from .key cimport Key
from .tree cimport Handle, Place, Tree

cdef enum:
    GROUP = 32       # keys that go ahead together


cdef void go_ahead(
    const Tree *tree, const Key *keys, const Place *roots, const Handle *known, int count
) noexcept nogil
cdef void touch_ahead(const Tree *tree, uint32_t run) noexcept nogil
cdef void evict_ahead(const Tree *tree, uint32_t run) noexcept nogil
