"""Runs, the nodes of the tree: making, showing, shortening, removing."""

from libc.stdint cimport int64_t, uint32_t

from .span cimport Span
from .tree cimport Tree


cdef uint32_t run_new(Tree *tree, uint32_t parent, uint32_t space, int64_t start) noexcept nogil
cdef void show(Tree *tree, uint32_t run, Span *span, int64_t offset) noexcept nogil
cdef bint hide(Tree *tree, uint32_t run) noexcept nogil
cdef void copy_window(const Tree *tree, uint32_t run, Span *target, int64_t offset, bint digests) noexcept nogil
cdef void spare_memory(Tree *tree, Span *span) noexcept nogil
cdef uint32_t run_make(Tree *tree, uint32_t parent, uint32_t space, Span *span, int64_t start) noexcept nogil
cdef void run_remove(Tree *tree, uint32_t run) noexcept nogil
cdef void run_shorten(Tree *tree, uint32_t run, int64_t count) noexcept nogil
