"""The invariants of the tree."""

from .forest cimport Forest


cdef object check_forest(Forest forest)
