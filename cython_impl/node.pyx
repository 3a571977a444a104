"""Runs. Whatever takes an item of a slab here has it reserved by the caller."""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy, memset

from .children cimport child_add, child_remove, hash_of_stored
from .hash_functions cimport DIGEST
from .log cimport COPY, GONE, MADE, note
from .queue cimport UNQUEUED, refresh_candidate
from .slab cimport slab_give, slab_take
from .span cimport Span, copy_slots, span_bytes, span_free, span_make_digests, span_new, tokens_of
from .tree cimport Detail, Run, Tree, detail_of, length_of_run, mark_of, page_digest_after, run_at

cdef int64_t SPARSE = 32    # spans of fewer units pin too little to be worth copying


cdef uint32_t run_new(Tree *tree, uint32_t parent, uint32_t space, int64_t start) noexcept nogil:
    """A run without pages, marks and children, which nobody knows yet. One run must be reserved."""
    cdef uint32_t made = slab_take(&tree.runs)
    cdef Run *run = run_at(tree, made)
    cdef Detail *detail = detail_of(tree, made)
    memset(run, 0, sizeof(Run))
    memset(detail, 0, sizeof(Detail))
    run.parent = parent
    run.start = run.end = <uint32_t> start
    detail.space = space
    detail.before = <uint32_t> UNQUEUED
    return made


cdef void show(Tree *tree, uint32_t run, Span *span, int64_t offset) noexcept nogil:
    """Let a run show the window of ``span`` that begins at ``offset``."""
    cdef Detail *detail = detail_of(tree, run)
    run_at(tree, run).tokens = tokens_of(span) + offset
    detail.span = span
    detail.offset = <uint32_t> offset
    detail.span_previous = 0
    detail.span_next = span.first_run
    if span.first_run:
        detail_of(tree, span.first_run).span_previous = run
    span.first_run = run
    span.live += <uint32_t> length_of_run(run_at(tree, run))


cdef bint hide(Tree *tree, uint32_t run) noexcept nogil:
    """Take a run's window away; a span without windows is freed. Whether the span is still there."""
    cdef Detail *detail = detail_of(tree, run)
    cdef Span *span = detail.span
    if detail.span_previous:
        detail_of(tree, detail.span_previous).span_next = detail.span_next
    else:
        span.first_run = detail.span_next
    if detail.span_next:
        detail_of(tree, detail.span_next).span_previous = detail.span_previous
    span.live -= <uint32_t> length_of_run(run_at(tree, run))
    if span.first_run:
        return True
    tree.span_bytes -= span_bytes(span, tree.page, tree.overlap)
    span_free(span)
    return False


cdef void copy_window(const Tree *tree, uint32_t run, Span *target, int64_t offset, bint digests) noexcept nogil:
    """Tokens (with the overlap), slots and ``digests`` of a run, to where ``target`` has room."""
    cdef const Run *entry = run_at(tree, run)
    cdef const Detail *detail = detail_of(tree, run)
    cdef int64_t length = length_of_run(entry)
    memcpy(tokens_of(target) + offset, entry.tokens, (length + tree.overlap) * sizeof(uint32_t))
    copy_slots(detail.span, detail.offset, length, target, offset)
    if digests and detail.hashed:
        memcpy(
            target.digests + offset // tree.page * DIGEST, page_digest_after(tree, run, entry.start),
            detail.hashed * DIGEST,
        )


cdef void spare_memory(Tree *tree, Span *span) noexcept nogil:
    """A span of which less than half is shown is given up: each of its runs gets a span of its own.

    What is copied is less than what has gone since the span was made, so this is O(1) for each unit that goes.
    """
    cdef uint32_t run, following
    cdef Span *own
    if span.size < SPARSE or <int64_t> span.live * 2 >= span.size:
        return
    note(tree, COPY, span.live, span.size)
    run = span.first_run
    while run:
        following = detail_of(tree, run).span_next
        own = span_new(length_of_run(run_at(tree, run)), tree.overlap, span.form)
        if own == NULL:
            return
        if detail_of(tree, run).hashed and span_make_digests(own, tree.page):
            span_free(own)
            return
        copy_window(tree, run, own, 0, True)
        tree.span_bytes += span_bytes(own, tree.page, tree.overlap)
        hide(tree, run)
        show(tree, run, own, 0)
        run = following


cdef uint32_t run_make(Tree *tree, uint32_t parent, uint32_t space, Span *span, int64_t start) noexcept nogil:
    """A run that shows all of ``span``, below ``parent``, without marks yet. One run and one child must be reserved."""
    cdef uint32_t made = run_new(tree, parent, space, start)
    run_at(tree, made).end = <uint32_t> (start + span.size)
    tree.span_bytes += span_bytes(span, tree.page, tree.overlap)
    show(tree, made, span, 0)
    detail_of(tree, made).hash = hash_of_stored(tree, made)
    child_add(tree, made)
    note(tree, MADE, span.size, start)
    return made


cdef void run_remove(Tree *tree, uint32_t run) noexcept nogil:
    """A run whose pages have all gone, without children."""
    cdef Span *span = detail_of(tree, run).span
    cdef uint32_t mark = run_at(tree, run).marks
    cdef uint32_t above
    note(tree, GONE, run_at(tree, run).start, 0)
    refresh_candidate(tree, run)
    child_remove(tree, run)
    if hide(tree, run):
        spare_memory(tree, span)
    while mark:
        above = mark_of(tree, mark).above
        slab_give(&tree.marks, mark)
        mark = above
    detail_of(tree, run).space = 0
    slab_give(&tree.runs, run)


cdef void run_shorten(Tree *tree, uint32_t run, int64_t count) noexcept nogil:
    """Cut ``count`` units off the end of a run, within its tail segment."""
    cdef Run *entry = run_at(tree, run)
    cdef Detail *detail = detail_of(tree, run)
    entry.end -= <uint32_t> count
    detail.span.live -= <uint32_t> count
    mark_of(tree, entry.marks).end = entry.end
    if detail.hashed:
        detail.hashed = <uint32_t> min(<int64_t> detail.hashed, length_of_run(entry) // tree.page)
    if entry.end > entry.start:
        spare_memory(tree, detail.span)
