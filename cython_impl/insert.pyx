"""Insert: find what is there, reserve, then change. Nothing has changed when it fails."""

from libc.stdint cimport INT64_MIN, UINT32_MAX, int64_t, uint32_t
from libc.string cimport memcpy

from .births cimport birth_make
from .children cimport child_find, children_reserve
from .compare cimport are_tokens, common_prefix, copy_tokens
from .events cimport STORED, event_new, event_queue
from .hash_functions cimport DIGEST, event_hash
from .hashing cimport digest_of, fill_digests
from .key cimport Key, key_from, key_of
from .marks cimport mark_make
from .merge cimport merge_chain, merge_pending
from .node cimport run_make
from .queue cimport refresh_candidate
from .slab cimport slab_reserve
from .span cimport Span, form_of, span_free, span_make_digests, span_new, tokens_of, write_slots
from .split cimport split
from .tree cimport (
    Event, Handle, Place, Run, Tree, detail_of, mark_of, page_tokens, run_at, space_at, weight_of, whole_pages,
)
from .walk cimport DONE, NO_MEMORY, OUTSIDE, RACED, Answer, name_page, touch, walk_on


cdef int reserve(Tree *tree) noexcept nogil:
    """For the new run, the split above it, and two touched pages; -1 if memory is short."""
    if slab_reserve(&tree.runs, 4) or slab_reserve(&tree.marks, 4) or slab_reserve(&tree.births, 1):
        return -1
    return children_reserve(tree, 4)


cdef Span *new_span(const Tree *tree, Place place, const Insertion *insertion, int64_t known) noexcept nogil:
    """The tokens, slots and (with events on) digests of the new pages; NULL if memory is short."""
    cdef int64_t units = insertion.units - known
    cdef Span *span = span_new(units, tree.overlap, form_of(insertion.slots + known, units))
    if span == NULL:
        return NULL
    copy_tokens(key_from(insertion.key, known), tokens_of(span), units + tree.overlap)
    write_slots(span, insertion.slots + known, units)
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
    cdef Key stored_key = key_of(tokens_of(span), span.size + tree.overlap, False)
    cdef int64_t common
    if tree.overlap and place.depth and page_tokens(run, place.depth)[0] != tokens_of(span)[0]:
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
    memcpy(event.tokens, tokens_of(span), event.tokens_count * sizeof(uint32_t))
    if place.depth:
        event.has_parent = True
        event.parent_hash = event_hash(digest_of(tree, place))
    return event


cdef uint32_t attach(Tree *tree, Place place, Span *span, int64_t now, int64_t priority) noexcept nogil:
    """Put the new pages below ``place``, as one run with one birth."""
    cdef uint32_t parent = place.run
    cdef uint32_t made, at
    cdef Run *run
    if place.depth < run_at(tree, parent).end:
        parent = split(tree, parent, place.depth)
    made = run_make(tree, parent, detail_of(tree, parent).space, span, place.depth)
    run = run_at(tree, made)
    if tree.events_on:
        detail_of(tree, made).hashed = <uint32_t> (span.size // tree.page)
    at = mark_make(tree, run.end, birth_make(tree, made, now), now, 0)
    if tree.by_last:
        mark_of(tree, at).last = now
    if tree.by_priority:
        weight_of(tree, at).priority = priority
    if tree.by_hits:
        weight_of(tree, at).hits = 1
    run.marks = at
    detail_of(tree, made).mark_count = 1
    space_at(tree, detail_of(tree, made).space).total += span.size
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
    cdef Handle named
    if not are_tokens(key_from(insertion.key, known)):
        return OUTSIDE
    if start.depth + insertion.units >= UINT32_MAX:
        # Depths are kept in 32 bits.
        return NO_MEMORY
    if reserve(tree):
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
        insertion.birth = mark_of(tree, run_at(tree, made).marks).birth
        insertion.creation = now
        counted.run = run_at(tree, made).parent
        if event != NULL:
            event_queue(tree, event)
    else:
        name_page(tree, place, &named)
        insertion.birth = named.birth
        insertion.creation = named.creation
        touch(tree, place, now, insertion.priority, 1)
    if tree.by_hits:
        # An earlier chunk of the request inserted the pages down to here: for them this is no hit.
        counted.depth = min(whole_pages(tree, insertion.inserted_len), place.depth)
        if counted.depth:
            while run_at(tree, counted.run).start >= counted.depth:
                counted.run = run_at(tree, counted.run).parent
            touch(tree, counted, 0, INT64_MIN, -1)
    if made:
        merge_chain(tree, made)
    merge_pending(tree)
    tree.total += fresh
    tree.inserts += 1
    tree.inserted_tokens += fresh
    return DONE
