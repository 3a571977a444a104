"""The walk down a key, and what a call writes where it ended: one mark, whatever the length of the path."""

from libc.stdint cimport INT64_MIN, int64_t, uint32_t
from libc.string cimport memcpy

from .children cimport child_find, children_reserve
from .heap cimport refresh_candidate
from .marks cimport mark_at, marks_prune, segment_at
from .merge cimport try_merge
from .slab cimport slab_reserve
from .span cimport common_prefix
from .split cimport limit_marks
from .tree cimport (
    Handle, Mark, Place, Run, Tree, birth_at, mark_of, page_slots, page_tokens, run_at, whole_pages,
)


cdef Place walk(const Tree *tree, Place place, const uint32_t *tokens, int64_t units) noexcept nogil:
    """The deepest cached page of a key of ``units`` units (whole pages) that begins below ``place``.

    The place is always in the run that holds the page, so at the end of a run, not above the first page of another.
    """
    cdef int64_t matched = 0
    cdef int64_t part, equal
    cdef uint32_t child
    cdef const Run *run
    if place.run == 0:
        return place
    run = run_at(tree, place.run)
    while matched < units:
        if place.depth == run.end:
            child = child_find(tree, place.run, tokens + matched)
            if child == 0:
                break
            place.run = child
            run = run_at(tree, child)
        part = min(run.end - place.depth, units - matched)
        equal = common_prefix(tokens + matched, page_tokens(run, place.depth), part + tree.overlap) - tree.overlap
        if equal < part:
            if equal > 0:
                place.depth += equal - equal % tree.page
            break
        place.depth += part
        matched += part
    return place


cdef int reserve_touch(Tree *tree) noexcept nogil:
    """What one `touch` may need; -1 if memory is short."""
    return slab_reserve(&tree.marks, 1) or slab_reserve(&tree.runs, 1) or children_reserve(tree, 1)


cdef void touch(Tree *tree, Place place, int64_t now, int64_t priority, int64_t hits) noexcept nogil:
    """A call ended at this page (at a root there is nothing to write). Reserved with `reserve_touch`.

    What the policy does not rank by is not written.
    """
    cdef Run *run
    cdef Mark *mark
    cdef uint32_t at
    cdef bint pruned
    if place.depth == 0 or not (tree.by_last or tree.by_hits or tree.by_priority):
        return
    run = run_at(tree, place.run)
    at = mark_at(tree, run, place.depth)
    mark = mark_of(tree, at)
    if tree.by_last:
        mark.last = max(mark.last, now)
    if tree.by_priority:
        mark.priority = max(mark.priority, priority)
    if tree.by_hits:
        mark.hits += hits
    pruned = mark.previous != 0 and marks_prune(tree, run, mark.previous, at)
    if run.heap_index and mark.next == 0:
        refresh_candidate(tree, place.run)
    if pruned:
        # What split the run may have been the marks that are gone.
        try_merge(tree, place.run)
    else:
        limit_marks(tree, place.run)


cdef void gather(const Tree *tree, Place place, int64_t start, int64_t *slots) noexcept nogil:
    """Write the slots of the path from unit ``start`` to ``place``."""
    cdef const Run *run = run_at(tree, place.run)
    cdef int64_t end = place.depth
    cdef int64_t from_depth
    while end > start:
        from_depth = max(run.start, start)
        memcpy(slots + (from_depth - start), page_slots(run, from_depth), (end - from_depth) * sizeof(int64_t))
        end = from_depth
        run = run_at(tree, run.parent)


cdef uint32_t birth_of(const Tree *tree, Place place) noexcept nogil:
    """The birth of a page; 0 at a root."""
    if place.depth == 0:
        return 0
    return mark_of(tree, segment_at(tree, run_at(tree, place.run), place.depth)).birth


cdef int64_t units_of(const Tree *tree, int64_t tokens) noexcept nogil:
    """The units of the whole pages of a key of so many tokens."""
    return whole_pages(tree, max(tokens - tree.overlap, 0))


cdef int match_pages(Tree *tree, Place start, const uint32_t *tokens, int64_t units, Handle *handle) noexcept nogil:
    """One match of whole pages below ``start``; -1, and nothing changed, if memory is short."""
    cdef Place place
    if reserve_touch(tree):
        return -1
    place = walk(tree, start, tokens, units)
    tree.clock += 1
    tree.lookups += 1
    tree.lookup_tokens += units
    tree.hit_tokens += place.depth - start.depth
    handle.length = place.depth
    handle.birth = birth_of(tree, place)
    handle.creation = birth_at(tree, handle.birth).creation if handle.birth else tree.epoch
    touch(tree, place, tree.clock, INT64_MIN, 0)
    return 0
