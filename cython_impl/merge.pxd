"""Merging runs that have no branch between them."""

from libc.stdint cimport uint32_t

from .tree cimport Tree


cdef void merge_upwards(Tree *tree, uint32_t run) noexcept nogil
cdef void merge_later(Tree *tree, uint32_t run) noexcept nogil
cdef void merge_pending(Tree *tree) noexcept nogil
cdef void merge_chain(Tree *tree, uint32_t run) noexcept nogil
