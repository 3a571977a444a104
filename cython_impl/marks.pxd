"""Marks: what the calls that ended at a page wrote there."""

from libc.stdint cimport int64_t, uint32_t

from .tree cimport Mark, Run, Tree

cdef enum:
    MOST_MARKS = 64      # a run with more is split in two
    MERGED_MARKS = 32    # a merge makes no run with more


cdef uint32_t segment_at(const Tree *tree, const Run *run, int64_t depth) noexcept nogil
cdef uint32_t mark_at(Tree *tree, Run *run, int64_t depth) noexcept nogil
cdef void mark_drop(Tree *tree, Run *run, uint32_t mark) noexcept nogil
cdef bint marks_prune(Tree *tree, Run *run, uint32_t lowest, uint32_t reference) noexcept nogil
cdef void fold(const Mark *source, Mark *target) noexcept nogil
