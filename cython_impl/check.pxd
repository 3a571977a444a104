"""The invariants of the tree."""

from .spaces cimport Forest


cdef object check_forest(Forest forest)
