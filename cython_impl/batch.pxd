"""Many keys in one call."""

from .forest cimport Forest
from .results cimport BatchMatchResult


cdef BatchMatchResult match_many(Forest forest, object keys, object extra_keys, object threads)
cdef object peek_many(Forest forest, object keys, object extra_keys, object threads)
