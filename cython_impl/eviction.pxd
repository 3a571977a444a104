"""Eviction of pages by rank."""

from libc.stdint cimport int64_t

from .forest cimport Forest
from .results cimport EvictResult


cdef EvictResult evict_from(Forest forest, bint one_space, object name, int64_t wanted)
