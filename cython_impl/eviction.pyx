"""Eviction: freeing the pages of the smallest rank, a whole segment at a time where that many are wanted."""

from libc.stdint cimport INT64_MAX, int64_t, uint32_t

from .births cimport birth_shortened
from .events cimport REMOVED, event_free, event_new, event_queue
from .hash_functions cimport event_hash
from .log cimport EVICT, SHORT, note
from .marks cimport fold, marks_prune
from .merge cimport merge_pending, merge_upwards
from .node cimport run_remove, run_shorten
from .prefetch cimport evict_ahead
from .queue cimport first_candidate, refresh_candidate
from .results cimport EvictResult, array_data, new_array
from .slab cimport slab_give
from .span cimport read_slots, read_slots_back
from .spaces cimport Forest
from .tree cimport Detail, Event, Mark, Run, Tree, detail_of, mark_of, page_digest_after, run_at, space_at


cdef void take_pages(
    const Tree *tree, uint32_t run, int64_t count, int64_t *slots, int64_t *hashes
) noexcept nogil:
    """Note what the last ``count`` units of a run hold: page by page from the end on, in token order within a page."""
    cdef const Detail *detail = detail_of(tree, run)
    cdef int64_t start = run_at(tree, run).start
    cdef int64_t depth = run_at(tree, run).end
    cdef int64_t floor = depth - count
    if tree.page == 1:
        read_slots_back(detail.span, detail.offset + (floor - start), count, slots)
        if hashes == NULL:
            return
    while depth > floor:
        depth -= tree.page
        if tree.page != 1:
            read_slots(detail.span, detail.offset + (depth - start), tree.page, slots)
            slots += tree.page
        if hashes != NULL:
            hashes[0] = event_hash(page_digest_after(tree, run, depth))
            hashes += 1


cdef void finish_segment(Tree *tree, uint32_t run) noexcept nogil:
    """The tail segment of a run is used up: fold what its mark says into the page above, and remove what is empty."""
    cdef Run *entry = run_at(tree, run)
    cdef uint32_t parent = entry.parent
    cdef uint32_t space = detail_of(tree, run).space
    cdef uint32_t tail = entry.marks
    cdef uint32_t above = mark_of(tree, tail).above
    cdef bint used_up = above == 0
    cdef uint32_t holder = parent if used_up else run
    if used_up:
        above = run_at(tree, parent).marks
    birth_shortened(tree, mark_of(tree, tail).birth, above, holder)
    if above:
        fold(tree, tail, above)
    if used_up:
        run_remove(tree, run)
    else:
        entry.marks = above
        detail_of(tree, run).mark_count -= 1
        slab_give(&tree.marks, tail)
    if above:
        marks_prune(tree, holder, above)
    if not used_up:
        refresh_candidate(tree, run)
        return
    entry = run_at(tree, parent)
    if entry.parent == 0:
        if entry.children == 0:
            space_at(tree, space).next_empty = tree.empty_spaces
            tree.empty_spaces = space
    elif entry.children == 0:
        refresh_candidate(tree, parent)
    elif entry.children == 1:
        merge_upwards(tree, entry.child_xor)


cdef int64_t evict_pages(Tree *tree, uint32_t space, int64_t wanted, int64_t *slots, int64_t *hashes) noexcept nogil:
    """Free pages by rank until ``wanted`` units are free or none can go: how many were freed.

    ``space`` 0: of all spaces. ``slots`` and (NULL with events off) ``hashes`` have room for all that can go. Never
    fails.
    """
    cdef int64_t freed = 0
    cdef int64_t count, above
    cdef uint32_t run
    cdef uint32_t from_space = space
    cdef Run *entry
    cdef const Mark *tail
    merge_pending(tree)
    while freed < wanted:
        if space == 0:
            if tree.space_heap.size == 0:
                break
            from_space = tree.space_heap.entries[0].item
        run = first_candidate(tree, from_space).item
        if run == 0:
            break
        evict_ahead(tree, run)
        entry = run_at(tree, run)
        tail = mark_of(tree, entry.marks)
        above = mark_of(tree, tail.above).end if tail.above else entry.start
        count = entry.end - above
        if wanted - freed < count:
            count = (wanted - freed + tree.page - 1) // tree.page * tree.page
        take_pages(tree, run, count, slots + freed, hashes + freed // tree.page if hashes != NULL else NULL)
        freed += count
        tree.total -= count
        space_at(tree, from_space).total -= count
        run_shorten(tree, run, count)
        if run_at(tree, run).end == above:
            finish_segment(tree, run)
    tree.evicted_tokens += freed
    if freed:
        note(tree, EVICT, freed, tree.total)
    return freed


cdef int64_t evictable(Forest forest, bint one_space, object name, int64_t wanted, uint32_t *space) except -1:
    """How many units go if ``wanted`` are asked for: whole pages, as far as there are."""
    cdef Tree *tree = &forest.tree
    cdef int64_t most = tree.total - tree.locked
    if one_space:
        space[0] = forest.space_of(name)
        if space[0] == 0:
            return 0
        most = space_at(tree, space[0]).total - space_at(tree, space[0]).locked
    return most if wanted >= most else (wanted + tree.page - 1) // tree.page * tree.page


cdef EvictResult evict_from(Forest forest, bint one_space, object name, int64_t wanted):
    """Evict from all spaces, or from that of ``name``. How much goes is known beforehand, so room is made first."""
    cdef Tree *tree = &forest.tree
    cdef EvictResult result = EvictResult.__new__(EvictResult)
    cdef Event *event = NULL
    cdef int64_t count
    cdef uint32_t space = 0
    cdef bint is_short = False
    forest.enter()
    while True:
        count = evictable(forest, one_space, name, wanted, &space)
        result.slots = new_array(count)
        if tree.events_on and count:
            event = event_new(REMOVED, count // tree.page, 0)
            if event == NULL:
                raise MemoryError
        forest.enter()
        if evictable(forest, one_space, name, wanted, &space) == count:
            break
        event_free(event)
        event = NULL
    # Who asks for so many that they cannot be counted wants all that can go.
    if count < wanted and wanted != INT64_MAX:
        is_short = tree.total > count if not one_space else space != 0 and space_at(tree, space).total > count
    if count:
        evict_pages(tree, space, count, array_data(result.slots), event.hashes if event != NULL else NULL)
        forest.drop_empty_spaces()
        if event != NULL:
            event_queue(tree, event)
    if is_short:
        note(tree, SHORT, count, wanted)
    result.freed = count
    return result
