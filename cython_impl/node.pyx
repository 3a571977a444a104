"""Runs. Whatever takes an item of a slab here has it reserved by the caller; only merging, which no result depends on,
asks for memory, and lets it be if there is none."""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from .births cimport births_move
from .candidates cimport refresh_candidate
from .children cimport child_add, child_remove, page_hash
from .marks cimport MERGED_MARKS, MOST_MARKS, mark_at, marks_prune
from .hashing cimport DIGEST
from .slab cimport slab_give, slab_take
from .span cimport Span, span_bytes, span_free, span_make_digests, span_new
from .tree cimport Run, Tree, has_locked_pages, mark_of, page_digest_after, page_slots, page_tokens, run_at

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
    run.hash = page_hash(tree, span.tokens)
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


cdef uint32_t split(Tree *tree, uint32_t run, int64_t depth) noexcept nogil:
    """Make a run of the pages down to ``depth``, and return it; ``run`` keeps its identity, and what lies below.

    Nothing is copied. A run, a mark and a child must be reserved.
    """
    cdef uint32_t made = slab_take(&tree.runs)
    cdef Run *lower = run_at(tree, run)
    cdef Run *upper = run_at(tree, made)
    cdef uint32_t last = mark_at(tree, lower, depth)
    cdef uint32_t first_below = mark_of(tree, last).next
    cdef uint32_t mark
    cdef int64_t pages = (depth - lower.start) // tree.page
    child_remove(tree, run)
    upper.parent = lower.parent
    upper.space = lower.space
    upper.start = lower.start
    upper.end = depth
    upper.hash = lower.hash
    upper.hashed = min(lower.hashed, pages)
    upper.locked_end = min(lower.locked_end, depth)
    upper.locked_children = lower.locked_end > depth
    upper.children = upper.child_xor = upper.heap_index = 0

    upper.first_mark = lower.first_mark
    upper.last_mark = last
    upper.marks = 0
    mark = upper.first_mark
    while mark != first_below:
        upper.marks += 1
        mark = mark_of(tree, mark).next
    births_move(tree, upper.first_mark, first_below, run, made)
    mark_of(tree, last).next = 0
    mark_of(tree, first_below).previous = 0
    lower.first_mark = first_below
    lower.marks -= upper.marks

    lower.span.live -= depth - lower.start
    show(tree, made, lower.span, lower.offset)
    lower.offset += depth - lower.start
    lower.start = depth
    lower.hashed -= upper.hashed
    lower.hash = page_hash(tree, page_tokens(lower, depth))
    child_add(tree, made)
    lower.parent = made
    child_add(tree, run)
    return made


cdef void limit_marks(Tree *tree, uint32_t run) noexcept nogil:
    """Split a run of too many marks in the middle of them. A run and a child must be reserved."""
    cdef Run *entry = run_at(tree, run)
    cdef uint32_t mark = entry.first_mark
    cdef uint32_t _i
    if entry.marks > MOST_MARKS:
        for _i in range(entry.marks // 2 - 1):
            mark = mark_of(tree, mark).next
        split(tree, run, mark_of(tree, mark).end)


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
    child_remove(tree, absorbed)
    show_both(tree, run, absorbed, span, offset)
    lower.parent = upper.parent
    lower.hash = upper.hash
    child_add(tree, run)
    upper.space = 0
    slab_give(&tree.runs, absorbed)
    marks_prune(tree, lower, mark_of(tree, boundary).previous, lower.last_mark)
    return True


cdef void try_merge(Tree *tree, uint32_t run) noexcept nogil:
    """Merge a run with the runs above it, as far as they have no other child and the copying pays."""
    while merge(tree, run):
        pass
