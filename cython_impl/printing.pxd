"""The printed form, for people."""

from .forest cimport Forest


cdef object print_forest(Forest forest, object title, object file)
