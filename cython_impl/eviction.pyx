"""Eviction: freeing the pages of the smallest rank, a whole segment at a time where that many are wanted."""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from .births cimport birth_shortened
from .events cimport REMOVED, event_free, event_new, event_queue
from .hash_functions cimport event_hash
from .heap cimport refresh_candidate
from .marks cimport fold, mark_drop
from .merge cimport try_merge
from .node cimport run_remove, run_shorten
from .results cimport EvictResult, array_data, new_array
from .spaces cimport Forest
from .tree cimport Event, Mark, Run, Tree, mark_of, page_digest_after, page_slots, run_at, space_at


cdef void take_pages(const Tree *tree, const Run *run, int64_t count, int64_t *slots, int64_t *hashes) noexcept nogil:
    """Note what the last ``count`` units of a run hold: page by page from the end on, in token order within a page."""
    cdef int64_t depth = run.end
    cdef int64_t floor = run.end - count
    if tree.page == 1 and hashes == NULL:
        while depth > floor:
            depth -= 1
            slots[0] = page_slots(run, depth)[0]
            slots += 1
        return
    while depth > floor:
        depth -= tree.page
        memcpy(slots, page_slots(run, depth), tree.page * sizeof(int64_t))
        slots += tree.page
        if hashes != NULL:
            hashes[0] = event_hash(page_digest_after(tree, run, depth))
            hashes += 1


cdef void finish_segment(Tree *tree, uint32_t run) noexcept nogil:
    """The tail segment of a run is used up: fold what its mark says into the page above, and remove what is empty."""
    cdef Run *entry = run_at(tree, run)
    cdef Run *parent = run_at(tree, entry.parent)
    cdef uint32_t parent_id = entry.parent
    cdef uint32_t space = entry.space
    cdef uint32_t tail = entry.last_mark
    cdef uint32_t above = mark_of(tree, tail).previous
    cdef bint used_up = above == 0
    if used_up:
        above = parent.last_mark
    birth_shortened(tree, mark_of(tree, tail).birth, above, parent_id if used_up else run)
    if above:
        fold(mark_of(tree, tail), mark_of(tree, above))
    if not used_up:
        mark_drop(tree, entry, tail)
        refresh_candidate(tree, run)
        return
    run_remove(tree, run)
    parent = run_at(tree, parent_id)
    if parent.parent == 0:
        if parent.children == 0:
            space_at(tree, space).next_empty = tree.empty_spaces
            tree.empty_spaces = space
    elif parent.children == 0:
        refresh_candidate(tree, parent_id)
    elif parent.children == 1:
        try_merge(tree, parent.child_xor)


cdef int64_t evict_pages(Tree *tree, uint32_t space, int64_t wanted, int64_t *slots, int64_t *hashes) noexcept nogil:
    """Free pages by rank until ``wanted`` units are free or none can go: how many were freed.

    ``space`` 0: of all spaces. ``slots`` and (NULL with events off) ``hashes`` have room for all that can go. Never
    fails: a candidate's place in the heap serves the parent that takes its turn.
    """
    cdef int64_t freed = 0
    cdef int64_t count, above
    cdef uint32_t run, from_space
    cdef Run *entry
    cdef const Mark *tail
    while freed < wanted:
        if space:
            from_space = space
            if space_at(tree, space).candidates.size == 0:
                break
        elif tree.space_heap.size == 0:
            break
        else:
            from_space = tree.space_heap.entries[0].item
        run = space_at(tree, from_space).candidates.entries[0].item
        entry = run_at(tree, run)
        tail = mark_of(tree, entry.last_mark)
        above = mark_of(tree, tail.previous).end if tail.previous else entry.start
        count = entry.end - above
        if wanted - freed < count:
            count = (wanted - freed + tree.page - 1) // tree.page * tree.page
        take_pages(tree, entry, count, slots + freed, hashes + freed // tree.page if hashes != NULL else NULL)
        freed += count
        tree.total -= count
        space_at(tree, from_space).total -= count
        run_shorten(tree, run, count)
        if run_at(tree, run).end == above:
            finish_segment(tree, run)
    tree.evicted_tokens += freed
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
    if count:
        evict_pages(tree, space, count, array_data(result.slots), event.hashes if event != NULL else NULL)
        forest.drop_empty_spaces()
        if event != NULL:
            event_queue(tree, event)
    result.freed = count
    return result
