"""Splitting a run in two."""

from libc.stdint cimport int64_t, uint32_t

from .tree cimport Tree


cdef uint32_t split(Tree *tree, uint32_t run, int64_t depth) noexcept nogil
cdef void limit_marks(Tree *tree, uint32_t run) noexcept nogil
