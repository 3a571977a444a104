"""Insert: find what is there, reserve, then change. Nothing has changed when it fails."""

from libc.stdint cimport INT64_MIN, int64_t, uint32_t
from libc.string cimport memcpy

from .births cimport birth_make
from .children cimport child_find, children_reserve
from .compare cimport are_tokens, common_prefix, copy_tokens
from .events cimport STORED, event_new, event_queue
from .hash_functions cimport DIGEST, event_hash
from .hashing cimport digest_of, fill_digests
from .heap cimport heap_reserve, refresh_candidate
from .key cimport Key, key_from
from .merge cimport try_merge
from .node cimport run_make
from .slab cimport slab_reserve, slab_take
from .span cimport Span, span_free, span_make_digests, span_new
from .split cimport split
from .tree cimport (
    Event, Heap, Mark, Place, Run, Tree, birth_at, mark_of, neutral, page_tokens, run_at, space_at, whole_pages,
)
from .walk cimport DONE, NO_MEMORY, OUTSIDE, RACED, Answer, birth_of, touch, walk_on


cdef int reserve(Tree *tree, Place place) noexcept nogil:
    """For the new run, the split above it, and two touched pages; -1 if memory is short."""
    cdef Heap *heap
    if slab_reserve(&tree.runs, 4) or slab_reserve(&tree.marks, 4) or slab_reserve(&tree.births, 1):
        return -1
    if children_reserve(tree, 4):
        return -1
    if place.run == 0:
        return 0
    heap = &space_at(tree, run_at(tree, place.run).space).candidates
    return heap_reserve(tree, heap, heap.size + 1)


cdef Span *new_span(const Tree *tree, Place place, const Insertion *insertion, int64_t known) noexcept nogil:
    """The tokens, slots and (with events on) digests of the new pages; NULL if memory is short."""
    cdef int64_t units = insertion.units - known
    cdef Span *span = span_new(units, tree.overlap)
    if span == NULL:
        return NULL
    copy_tokens(key_from(insertion.key, known), span.tokens, units + tree.overlap)
    memcpy(span.slots, insertion.slots + known, units * sizeof(int64_t))
    if tree.events_on:
        if span_make_digests(span, tree.page):
            span_free(span)
            return NULL
        if place.depth:
            fill_digests(tree, span, 0, units // tree.page, digest_of(tree, place), DIGEST)
        else:
            fill_digests(tree, span, 0, units // tree.page, insertion.seed, insertion.seed_size)
    return span


cdef bint has_raced(const Tree *tree, Place place, const Span *span) noexcept nogil:
    """Whether tokens that were stored after the walk had compared them do not belong below ``place`` any more."""
    cdef const Run *run = run_at(tree, place.run)
    cdef Key stored_key
    cdef int64_t common
    stored_key.data = span.tokens
    stored_key.count = span.size + tree.overlap
    stored_key.wide = False
    if tree.overlap and place.depth and page_tokens(run, place.depth)[0] != span.tokens[0]:
        return True
    if place.depth == run.end:
        return child_find(tree, place.run, stored_key, &common) != 0
    common = tree.page + tree.overlap
    return common_prefix(stored_key, page_tokens(run, place.depth), common) == common


cdef Event *stored(const Tree *tree, Place place, const Span *span) noexcept nogil:
    """The event of the new pages, but for the namespace; NULL if memory is short."""
    cdef int64_t i
    cdef Event *event = event_new(STORED, span.size // tree.page, span.size + tree.overlap)
    if event == NULL:
        return NULL
    for i in range(event.count):
        event.hashes[i] = event_hash(span.digests + i * DIGEST)
    memcpy(event.tokens, span.tokens, event.tokens_count * sizeof(uint32_t))
    if place.depth:
        event.has_parent = True
        event.parent_hash = event_hash(digest_of(tree, place))
    return event


cdef uint32_t attach(Tree *tree, Place place, Span *span, int64_t now, int64_t priority) noexcept nogil:
    """Put the new pages below ``place``, as one run with one birth."""
    cdef uint32_t parent = place.run
    cdef uint32_t made, at
    cdef Run *run
    cdef Mark *mark
    if place.depth < run_at(tree, parent).end:
        parent = split(tree, parent, place.depth)
    made = run_make(tree, parent, run_at(tree, parent).space, span, place.depth)
    run = run_at(tree, made)
    if tree.events_on:
        run.hashed = span.size // tree.page
    at = slab_take(&tree.marks)
    mark = mark_of(tree, at)
    neutral(mark, run.end, birth_make(tree, made, now))
    if tree.by_last:
        mark.last = now
    if tree.by_priority:
        mark.priority = priority
    if tree.by_hits:
        mark.hits = 1
    run.first_mark = run.last_mark = at
    run.marks = 1
    space_at(tree, run.space).total += span.size
    refresh_candidate(tree, parent)
    refresh_candidate(tree, made)
    return made


cdef Answer insert_pages(Tree *tree, Place start, Insertion *insertion) noexcept nogil:
    """Insert below ``start``, whose run is 0 only if there is nothing to insert."""
    cdef Place place = walk_on(tree, start, insertion.known, insertion.key, insertion.units)
    cdef Place counted = place
    cdef int64_t known = place.depth - start.depth
    cdef int64_t fresh = insertion.units - known
    cdef int64_t now
    cdef uint32_t made = 0
    cdef Span *span = NULL
    cdef Event *event = NULL
    if not are_tokens(key_from(insertion.key, known)):
        return OUTSIDE
    if reserve(tree, place):
        return NO_MEMORY
    if fresh:
        span = new_span(tree, place, insertion, known)
        if span == NULL:
            return NO_MEMORY
        if has_raced(tree, place, span):
            span_free(span)
            return RACED
        if tree.events_on:
            event = stored(tree, place, span)
            if event == NULL:
                span_free(span)
                return NO_MEMORY
    tree.clock += 1
    now = tree.clock
    insertion.prefix = place.depth
    if fresh:
        made = attach(tree, place, span, now, insertion.priority)
        insertion.birth = mark_of(tree, run_at(tree, made).last_mark).birth
        counted.run = run_at(tree, made).parent
        if event != NULL:
            event_queue(tree, event)
    else:
        insertion.birth = birth_of(tree, place)
        touch(tree, place, now, insertion.priority, 1)
    insertion.creation = birth_at(tree, insertion.birth).creation if insertion.birth else tree.epoch
    if tree.by_hits:
        # An earlier chunk of the request inserted the pages down to here: for them this is no hit.
        counted.depth = min(whole_pages(tree, insertion.inserted_len), place.depth)
        if counted.depth:
            while run_at(tree, counted.run).start >= counted.depth:
                counted.run = run_at(tree, counted.run).parent
            touch(tree, counted, 0, INT64_MIN, -1)
    if made:
        try_merge(tree, made)
    tree.total += fresh
    tree.inserts += 1
    tree.inserted_tokens += fresh
    return DONE
