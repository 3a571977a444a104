"""Marks: what the calls that ended at a page wrote there."""

from libc.stdint cimport int64_t, uint32_t

from .tree cimport Tree

cdef enum:
    MOST_MARKS = 160     # a run with more is split in two
    MERGED_MARKS = 80    # a merge makes no run with more


cdef uint32_t mark_make(
    Tree *tree, int64_t end, uint32_t birth, int64_t creation, uint32_t above
) noexcept nogil
cdef uint32_t segment_at(const Tree *tree, uint32_t run, int64_t depth) noexcept nogil
cdef uint32_t mark_at(Tree *tree, uint32_t run, int64_t depth) noexcept nogil
cdef uint32_t top_mark(const Tree *tree, uint32_t run) noexcept nogil
cdef bint marks_prune(Tree *tree, uint32_t run, uint32_t mark) noexcept nogil
cdef bint is_dispensable(const Tree *tree, uint32_t mark, uint32_t below) noexcept nogil
cdef void prune_all(Tree *tree, uint32_t run) noexcept nogil
cdef uint32_t merged_mark_count(const Tree *tree, uint32_t upper, uint32_t lower) noexcept nogil
cdef void fold(Tree *tree, uint32_t source, uint32_t target) noexcept nogil
