"""Merging runs that have no branch between them."""

from libc.stdint cimport uint32_t

from .tree cimport Tree


cdef void try_merge(Tree *tree, uint32_t run) noexcept nogil
