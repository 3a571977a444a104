"""Eviction of pages by rank."""

from libc.stdint cimport int64_t

from .results cimport EvictResult
from .spaces cimport Forest


cdef EvictResult evict_from(Forest forest, bint one_space, object name, int64_t wanted)
