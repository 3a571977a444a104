"""The walk down a key, and what a call writes where it ended: one mark, whatever the length of the path."""

from libc.stdint cimport INT64_MIN, int64_t, uint32_t

from .births cimport find_page
from .children cimport child_find, children_reserve
from .compare cimport are_tokens, common_prefix
from .key cimport Key, key_count, key_from
from .marks cimport is_dispensable, mark_at, segment_at
from .merge cimport merge_later, merge_pending
from .queue cimport refresh_candidate
from .slab cimport slab_reserve
from .span cimport read_slots
from .split cimport limit_marks
from .tree cimport (
    MOST_PENDING, Detail, Handle, Mark, Place, Run, Tree, Weight, detail_of, mark_of, page_tokens, run_at, weight_of,
    whole_pages,
)


cdef Place walk(const Tree *tree, Place place, Key key, int64_t units) noexcept nogil:
    """The deepest cached page of the first ``units`` units (whole pages) of a key that begins below ``place``.

    The place is always in the run that holds the page, so at the end of a run, not above the first page of another.
    """
    cdef int64_t matched = 0
    cdef int64_t left, equal
    cdef uint32_t child
    cdef const Run *run
    if place.run == 0:
        return place
    run = run_at(tree, place.run)
    while matched < units:
        if place.depth == run.end:
            child = child_find(tree, place.run, key_from(key, matched), &equal)
            if child == 0:
                break
            place.run = child
            run = run_at(tree, child)
        else:
            # Only where the key begins: what is left of that run.
            equal = common_prefix(
                key_from(key, matched), page_tokens(run, place.depth),
                min(run.end - place.depth + tree.overlap, key_count(key) - matched),
            )
        equal -= tree.overlap
        left = min(run.end - place.depth, units - matched)
        if equal < left:
            if equal > 0:
                place.depth += whole_pages(tree, equal)
            break
        place.depth += left
        matched += left
    return place


cdef Place go_on(const Tree *tree, Place root, const Handle *known, int64_t units) noexcept nogil:
    """The page where a key of ``units`` units is known to go below ``root``, if it still exists; else ``root``."""
    cdef Place place
    place.run = 0
    if known != NULL and known.length <= units and root.run:
        place.run = find_page(tree, known.birth, known.creation, known.length)
        place.depth = known.length
        if place.run and detail_of(tree, place.run).space != detail_of(tree, root.run).space:
            place.run = 0
    return place if place.run else root


cdef Place walk_on(const Tree *tree, Place start, const Handle *known, Key key, int64_t units) noexcept nogil:
    """`walk` from the page on that the key is known to begin with (NULL: none; else ``start`` is a root)."""
    cdef Place place = go_on(tree, start, known, units)
    cdef int64_t passed = place.depth - start.depth
    return walk(tree, place, key_from(key, passed), units - passed)


cdef int reserve_touch(Tree *tree) noexcept nogil:
    """What one `touch` may need; -1 if memory is short."""
    return slab_reserve(&tree.marks, 1) or slab_reserve(&tree.runs, 1) or children_reserve(tree, 1)


cdef void touch(Tree *tree, Place place, int64_t now, int64_t priority, int64_t hits) noexcept nogil:
    """A call ended at this page (at a root there is nothing to write). Reserved with `reserve_touch`.

    What the policy does not rank by is not written.
    """
    cdef Mark *mark
    cdef Weight *weight
    cdef uint32_t at
    if place.depth == 0 or not (tree.by_last or tree.has_weights):
        return
    at = mark_at(tree, place.run, place.depth)
    mark = mark_of(tree, at)
    if tree.by_last:
        mark.last = max(mark.last, now)
    if tree.has_weights:
        weight = weight_of(tree, at)
        if tree.by_priority:
            weight.priority = max(weight.priority, priority)
        if tree.by_hits:
            weight.hits += hits
    if run_at(tree, place.run).marks == at and run_at(tree, place.run).children == 0:
        refresh_candidate(tree, place.run)
    if mark.above and is_dispensable(tree, mark.above, at):
        # It goes soon, and what split the run may have been such marks.
        merge_later(tree, place.run)
    limit_marks(tree, place.run)


cdef void gather(const Tree *tree, Place place, int64_t start, int64_t *slots) noexcept nogil:
    """Write the slots of the path from unit ``start`` to ``place``."""
    cdef const Run *run
    cdef const Detail *detail
    cdef uint32_t at = place.run
    cdef int64_t end = place.depth
    cdef int64_t from_depth, first
    while end > start:
        run = run_at(tree, at)
        detail = detail_of(tree, at)
        from_depth = max(<int64_t> run.start, start)
        first = detail.offset + (from_depth - run.start)
        read_slots(detail.span, first, end - from_depth, slots + (from_depth - start))
        end = from_depth
        at = run.parent


cdef void name_page(const Tree *tree, Place place, Handle *handle) noexcept nogil:
    """Write the handle of a page or root."""
    cdef const Mark *mark
    handle.length = place.depth
    if place.depth:
        mark = mark_of(tree, segment_at(tree, place.run, place.depth))
        handle.birth = mark.birth
        handle.creation = mark.creation
    else:
        handle.birth = 0
        handle.creation = tree.epoch


cdef int64_t units_of(const Tree *tree, int64_t tokens) noexcept nogil:
    """The units of the whole pages of a key of so many tokens."""
    return whole_pages(tree, max(tokens - tree.overlap, 0))


cdef Place find_place(const Tree *tree, Place start, const Handle *known, Key key) noexcept nogil:
    """Where a match of the whole pages of a key ends. Its depth is -1 if the key is not of tokens."""
    cdef Place place = walk_on(tree, start, known, key, units_of(tree, key_count(key)))
    # What was not compared with tokens may be none.
    if not are_tokens(key_from(key, place.depth - start.depth)):
        place.depth = -1
    return place


cdef Place find_match(
    const Tree *tree, Place start, const Handle *known, Key key, Handle *handle
) noexcept nogil:
    """The same, and the handle of that page."""
    cdef Place place = find_place(tree, start, known, key)
    if place.depth >= 0:
        name_page(tree, place, handle)
    return place


cdef int note_match(Tree *tree, Place place, int64_t units, int64_t found) noexcept nogil:
    """Tick the clock and write what a match leaves. -1, and nothing has changed, if memory is short."""
    if reserve_touch(tree):
        return -1
    tree.clock += 1
    tree.lookups += 1
    tree.lookup_tokens += units
    tree.hit_tokens += found
    touch(tree, place, tree.clock, INT64_MIN, 0)
    return 0


cdef void merge_if_due(Tree *tree) noexcept nogil:
    """What matches have put off, after so many of them."""
    if tree.pending_count and tree.clock - tree.pending_since >= MOST_PENDING:
        merge_pending(tree)


cdef Answer match_pages(
    Tree *tree, Place start, const Handle *known, Key key, Handle *handle
) noexcept nogil:
    """One match of the whole pages of a key below ``start``. Nothing has changed unless all is well."""
    cdef Place place = find_match(tree, start, known, key, handle)
    if place.depth < 0:
        return OUTSIDE
    if note_match(tree, place, units_of(tree, key_count(key)), place.depth - start.depth):
        return NO_MEMORY
    merge_if_due(tree)
    return DONE
