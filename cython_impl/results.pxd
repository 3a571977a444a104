"""Handles, and what the operations return."""

from libc.stdint cimport int64_t

from .spaces cimport Forest
from .tree cimport Handle, Place


cdef object new_array(int64_t size)
cdef int64_t *array_data(object array) noexcept
cdef Place place_of(Forest forest, const Handle *handle, object name) except *


cdef class Node:
    cdef Forest forest
    cdef object name     # the pair, None for the default namespace
    cdef Handle handle


cdef class MatchResult:
    cdef Forest forest
    cdef object name
    cdef Handle handle
    cdef int64_t start
    cdef object cached_node
    cdef object cached_indices


cdef class BatchMatchResult:
    cdef Forest forest
    cdef list names      # None: all in the default namespace
    cdef Handle *handles
    cdef Py_ssize_t count
    cdef object cached_lengths
    cdef object cached_nodes
    cdef object cached_indices
    cdef object cached_offsets
    cdef object name_at(self, Py_ssize_t i)


cdef class InsertResult:
    cdef Forest forest
    cdef object name
    cdef Handle handle
    cdef int64_t prefix
    cdef object cached_node


cdef class EvictResult:
    cdef int64_t freed
    cdef object slots


cdef Node new_node(Forest forest, object name, Handle handle)
