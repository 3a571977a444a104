"""Births: the pages that one insert made, and how a handle finds its page again."""

from libc.stdint cimport int64_t, uint32_t

from .tree cimport Tree


cdef uint32_t birth_make(Tree *tree, uint32_t run, int64_t creation) noexcept nogil
cdef void birth_shortened(Tree *tree, uint32_t birth, uint32_t mark_above, uint32_t run_above) noexcept nogil
cdef void births_move(Tree *tree, uint32_t mark, uint32_t stays, uint32_t source, uint32_t target) noexcept nogil
cdef uint32_t find_page(const Tree *tree, uint32_t birth, int64_t creation, int64_t depth) noexcept nogil
