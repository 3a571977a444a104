"""Many keys in one call."""

from .results cimport BatchMatchResult
from .spaces cimport Forest


cdef BatchMatchResult match_many(Forest forest, object keys, object extra_keys, object threads)
cdef object peek_many(Forest forest, object keys, object extra_keys, object threads)
