"""The printed form, for people."""

from .spaces cimport Forest


cdef object print_forest(Forest forest, object title, object file)
