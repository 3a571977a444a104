"""Runs, the nodes of the tree: making, splitting, merging, shortening."""

from libc.stdint cimport int64_t, uint32_t

from .span cimport Span
from .tree cimport Run, Tree


cdef uint32_t run_make(Tree *tree, uint32_t parent, uint32_t space, Span *span, int64_t start) noexcept nogil
cdef void run_remove(Tree *tree, uint32_t run) noexcept nogil
cdef void run_shorten(Tree *tree, uint32_t run, int64_t count) noexcept nogil
cdef uint32_t split(Tree *tree, uint32_t run, int64_t depth) noexcept nogil
cdef void limit_marks(Tree *tree, uint32_t run) noexcept nogil
cdef void try_merge(Tree *tree, uint32_t run) noexcept nogil
