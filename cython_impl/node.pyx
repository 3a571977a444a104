"""Runs. Whatever takes an item of a slab here has it reserved by the caller."""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from .children cimport child_add, child_remove, hash_of_stored
from .hash_functions cimport DIGEST
from .heap cimport refresh_candidate
from .slab cimport slab_give, slab_take
from .span cimport Span, span_bytes, span_free, span_make_digests, span_new
from .tree cimport Run, Tree, mark_of, page_digest_after, page_slots, page_tokens, run_at

cdef int64_t SPARSE = 32    # spans of fewer units pin too little to be worth copying


cdef void show(Tree *tree, uint32_t run, Span *span, int64_t offset) noexcept nogil:
    """Let a run show the window of ``span`` that begins at ``offset``."""
    cdef Run *entry = run_at(tree, run)
    entry.span = span
    entry.offset = offset
    entry.span_previous = 0
    entry.span_next = span.first_run
    if span.first_run:
        run_at(tree, span.first_run).span_previous = run
    span.first_run = run
    span.live += entry.end - entry.start


cdef bint hide(Tree *tree, uint32_t run) noexcept nogil:
    """Take a run's window away; a span without windows is freed. Whether the span is still there."""
    cdef Run *entry = run_at(tree, run)
    cdef Span *span = entry.span
    if entry.span_previous:
        run_at(tree, entry.span_previous).span_next = entry.span_next
    else:
        span.first_run = entry.span_next
    if entry.span_next:
        run_at(tree, entry.span_next).span_previous = entry.span_previous
    span.live -= entry.end - entry.start
    if span.first_run:
        return True
    tree.span_bytes -= span_bytes(span, tree.page, tree.overlap)
    span_free(span)
    return False


cdef void copy_window(const Tree *tree, const Run *run, Span *target, int64_t offset) noexcept nogil:
    """Tokens (with the overlap), slots and digests of a run, to where ``target`` has room."""
    cdef int64_t length = run.end - run.start
    memcpy(target.tokens + offset, page_tokens(run, run.start), (length + tree.overlap) * sizeof(uint32_t))
    memcpy(target.slots + offset, page_slots(run, run.start), length * sizeof(int64_t))
    if run.hashed:
        memcpy(
            target.digests + offset // tree.page * DIGEST, page_digest_after(tree, run, run.start), run.hashed * DIGEST
        )


cdef void spare_memory(Tree *tree, Span *span) noexcept nogil:
    """A span of which less than half is shown is given up: each of its runs gets a span of its own.

    What is copied is less than what has gone since the span was made, so this is O(1) for each unit that goes.
    """
    cdef uint32_t run, following
    cdef Run *entry
    cdef Span *own
    if span.size < SPARSE or span.live * 2 >= span.size:
        return
    run = span.first_run
    while run:
        entry = run_at(tree, run)
        following = entry.span_next
        own = span_new(entry.end - entry.start, tree.overlap)
        if own == NULL:
            return
        if entry.hashed and span_make_digests(own, tree.page):
            span_free(own)
            return
        copy_window(tree, entry, own, 0)
        tree.span_bytes += span_bytes(own, tree.page, tree.overlap)
        hide(tree, run)
        show(tree, run, own, 0)
        run = following


cdef uint32_t run_make(Tree *tree, uint32_t parent, uint32_t space, Span *span, int64_t start) noexcept nogil:
    """A run that shows all of ``span``, below ``parent``, without marks yet. One run and one child must be reserved."""
    cdef uint32_t made = slab_take(&tree.runs)
    cdef Run *run = run_at(tree, made)
    run.parent = parent
    run.space = space
    run.start = start
    run.end = start + span.size
    run.locked_end = 0
    run.hashed = 0
    run.children = run.child_xor = run.locked_children = run.heap_index = 0
    run.first_mark = run.last_mark = run.marks = 0
    tree.span_bytes += span_bytes(span, tree.page, tree.overlap)
    show(tree, made, span, 0)
    run.hash = hash_of_stored(tree, made)
    child_add(tree, made)
    return made


cdef void run_remove(Tree *tree, uint32_t run) noexcept nogil:
    """A run whose pages have all gone, without children."""
    cdef Run *entry = run_at(tree, run)
    cdef Span *span = entry.span
    cdef uint32_t mark = entry.first_mark
    cdef uint32_t following
    refresh_candidate(tree, run)
    child_remove(tree, run)
    if hide(tree, run):
        spare_memory(tree, span)
    while mark:
        following = mark_of(tree, mark).next
        slab_give(&tree.marks, mark)
        mark = following
    entry.space = 0
    slab_give(&tree.runs, run)


cdef void run_shorten(Tree *tree, uint32_t run, int64_t count) noexcept nogil:
    """Cut ``count`` units off the end of a run, within its tail segment."""
    cdef Run *entry = run_at(tree, run)
    entry.end -= count
    entry.span.live -= count
    mark_of(tree, entry.last_mark).end = entry.end
    entry.hashed = min(entry.hashed, (entry.end - entry.start) // tree.page)
    if entry.end > entry.start:
        spare_memory(tree, entry.span)
