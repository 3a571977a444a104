"""Merging runs that have no branch between them.

No result depends on it, so it asks for memory, and lets it be if there is none.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from .births cimport births_move
from .children cimport child_remove, child_replace
from .marks cimport MERGED_MARKS, marks_prune
from .node cimport copy_window, hide, show, spare_memory
from .slab cimport slab_give
from .span cimport Span, span_bytes, span_free, span_make_digests, span_new
from .tree cimport Run, Tree, has_locked_pages, mark_of, page_slots, page_tokens, run_at


cdef Span *joined(Tree *tree, const Run *upper, const Run *lower) noexcept nogil:
    """A new span of the pages of both; NULL if memory is short."""
    cdef int64_t length = upper.end - upper.start
    cdef bint all_hashed = upper.hashed * tree.page == length
    cdef Span *span = span_new(lower.end - upper.start, tree.overlap)
    if span == NULL:
        return NULL
    if upper.hashed or (lower.hashed and all_hashed):
        if span_make_digests(span, tree.page):
            span_free(span)
            return NULL
    copy_window(tree, upper, span, 0)
    if all_hashed or lower.hashed == 0:
        copy_window(tree, lower, span, length)
    else:
        memcpy(span.tokens + length, page_tokens(lower, lower.start),
               (lower.end - lower.start + tree.overlap) * sizeof(uint32_t))
        memcpy(span.slots + length, page_slots(lower, lower.start), (lower.end - lower.start) * sizeof(int64_t))
    return span


cdef void show_both(Tree *tree, uint32_t run, uint32_t absorbed, Span *span, int64_t offset) noexcept nogil:
    """Let ``run`` show the pages of both, at ``offset`` of ``span``, and give up the window of ``absorbed``."""
    cdef Run *entry = run_at(tree, run)
    cdef Span *above = run_at(tree, absorbed).span
    cdef Span *below = entry.span
    cdef int64_t start = run_at(tree, absorbed).start
    cdef bint below_left, above_left
    if span == below:
        hide(tree, absorbed)
        span.live += entry.start - start
        entry.start = start
        entry.offset = offset
        return
    below_left = hide(tree, run)
    entry.start = start
    show(tree, run, span, offset)
    above_left = hide(tree, absorbed)
    if above_left:
        spare_memory(tree, above)
    if below_left and below != above:
        spare_memory(tree, below)


cdef bint merge(Tree *tree, uint32_t run) noexcept nogil:
    """Make a run and its parent one, if they should be: ``run`` keeps its identity, and takes over what is above."""
    cdef Run *lower = run_at(tree, run)
    cdef uint32_t absorbed = lower.parent
    cdef Run *upper = run_at(tree, absorbed)
    cdef int64_t upper_length = upper.end - upper.start
    cdef int64_t offset
    cdef uint32_t boundary
    cdef Span *span
    if upper.parent == 0 or upper.children != 1:
        return False
    marks_prune(tree, upper, mark_of(tree, upper.last_mark).previous, lower.last_mark)
    if upper.marks + lower.marks > MERGED_MARKS:
        return False
    if upper.span == lower.span and upper.offset + upper_length == lower.offset:
        span = lower.span
        offset = upper.offset
    elif upper_length <= 2 * (lower.end - lower.start):
        span = joined(tree, upper, lower)
        if span == NULL:
            return False
        tree.span_bytes += span_bytes(span, tree.page, tree.overlap)
        offset = 0
    else:
        return False
    if upper.hashed * tree.page == upper_length:
        lower.hashed += upper.hashed
    else:
        lower.hashed = upper.hashed
    if not has_locked_pages(lower):
        lower.locked_end = upper.locked_end

    births_move(tree, upper.first_mark, 0, absorbed, run)
    boundary = lower.first_mark
    mark_of(tree, upper.last_mark).next = boundary
    mark_of(tree, boundary).previous = upper.last_mark
    lower.first_mark = upper.first_mark
    lower.marks += upper.marks

    child_remove(tree, run)
    child_replace(tree, absorbed, run)
    show_both(tree, run, absorbed, span, offset)
    upper.space = 0
    slab_give(&tree.runs, absorbed)
    marks_prune(tree, lower, mark_of(tree, boundary).previous, lower.last_mark)
    return True


cdef void try_merge(Tree *tree, uint32_t run) noexcept nogil:
    """Merge a run with the runs above it, as far as they have no other child and the copying pays."""
    while merge(tree, run):
        pass
