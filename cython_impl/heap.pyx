"""Candidates for eviction, by rank.

A candidate is a run without children that has pages without a lock. The pages of its tail segment have one rank, and
the ranks of two candidates differ. Each space has a heap of its candidates; above stands a heap of the spaces by their
best one.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc

from .tree cimport (
    FIFO, FILO, LFU, LRU, MRU, PRIORITY, Heap, HeapEntry, Mark, Run, Space, Tree, birth_at, mark_of, run_at, space_at,
)


cdef int heap_reserve(Tree *tree, Heap *heap, uint32_t size) noexcept nogil:
    """Make sure that the heap can hold ``size`` entries; -1 if memory is short."""
    cdef uint64_t capacity
    cdef HeapEntry *entries
    if size <= heap.capacity:
        return 0
    capacity = max(heap.capacity + <uint64_t> heap.capacity // 2, <uint64_t> size, <uint64_t> 4)
    entries = <HeapEntry *> realloc(heap.entries, capacity * sizeof(HeapEntry))
    if entries == NULL:
        return -1
    tree.heap_bytes += (<int64_t> capacity - heap.capacity) * <int64_t> sizeof(HeapEntry)
    heap.entries = entries
    heap.capacity = <uint32_t> capacity
    return 0


cdef void heap_free(Tree *tree, Heap *heap) noexcept nogil:
    tree.heap_bytes -= heap.capacity * <int64_t> sizeof(HeapEntry)
    free(heap.entries)
    heap.entries = NULL
    heap.size = heap.capacity = 0


cdef inline bint before(const HeapEntry *left, const HeapEntry *right) noexcept nogil:
    return left.high < right.high or (left.high == right.high and left.low < right.low)


cdef inline bint same_rank(const HeapEntry *left, const HeapEntry *right) noexcept nogil:
    return left.high == right.high and left.low == right.low


cdef inline void put(Tree *tree, Heap *heap, uint32_t at, HeapEntry entry) noexcept nogil:
    heap.entries[at] = entry
    if heap.of_spaces:
        space_at(tree, entry.item).heap_index = at + 1
    else:
        run_at(tree, entry.item).heap_index = at + 1


cdef void sift(Tree *tree, Heap *heap, uint32_t at, HeapEntry entry) noexcept nogil:
    """Put ``entry`` where it belongs, from the hole ``at`` on: up, else down."""
    cdef uint32_t above, child, last, best
    cdef uint32_t hole = at
    while hole:
        above = (hole - 1) >> 2
        if not before(&entry, &heap.entries[above]):
            break
        put(tree, heap, hole, heap.entries[above])
        hole = above
    if hole == at:
        while 4 * <uint64_t> hole + 1 < heap.size:
            best = 4 * hole + 1
            last = min(best + 4, heap.size)
            for child in range(best + 1, last):
                if before(&heap.entries[child], &heap.entries[best]):
                    best = child
            if not before(&heap.entries[best], &entry):
                break
            put(tree, heap, hole, heap.entries[best])
            hole = best
    put(tree, heap, hole, entry)


cdef void heap_remove(Tree *tree, Heap *heap, uint32_t at) noexcept nogil:
    heap.size -= 1
    if at < heap.size:
        sift(tree, heap, at, heap.entries[heap.size])


cdef bint is_candidate(const Run *run) noexcept nogil:
    return run.children == 0 and run.parent != 0 and max(run.locked_end, run.start) < run.end


cdef void rank_of(const Tree *tree, const Run *run, int64_t *high, int64_t *low) noexcept nogil:
    """The rank of the tail pages of a run; the smallest goes first."""
    cdef const Mark *mark = mark_of(tree, run.last_mark)
    high[0] = 0
    if tree.policy == LRU:
        low[0] = mark.last
    elif tree.policy == LFU:
        high[0] = mark.hits
        low[0] = mark.last
    elif tree.policy == FIFO:
        low[0] = birth_at(tree, mark.birth).creation
    elif tree.policy == MRU:
        low[0] = -mark.last
    elif tree.policy == FILO:
        low[0] = -birth_at(tree, mark.birth).creation
    elif tree.policy == PRIORITY:
        high[0] = mark.priority
        low[0] = mark.last
    else:
        high[0] = mark.hits >= tree.slru_threshold
        low[0] = mark.last


cdef void refresh_space(Tree *tree, uint32_t space) noexcept nogil:
    """Bring the heap of spaces in line with the best candidate of one. A space reserved its place when it was made."""
    cdef Space *entry = space_at(tree, space)
    cdef HeapEntry best
    if entry.candidates.size == 0:
        if entry.heap_index:
            heap_remove(tree, &tree.space_heap, entry.heap_index - 1)
            entry.heap_index = 0
        return
    best = entry.candidates.entries[0]
    best.item = space
    if entry.heap_index == 0:
        tree.space_heap.size += 1
        entry.heap_index = tree.space_heap.size
    sift(tree, &tree.space_heap, entry.heap_index - 1, best)


cdef void refresh_candidate(Tree *tree, uint32_t run) noexcept nogil:
    """Let a run stand in its heap if and only if it is a candidate, and by its rank. O(log n).

    A run that becomes a candidate needs a reserved place.
    """
    cdef Run *entry = run_at(tree, run)
    cdef Heap *heap = &space_at(tree, entry.space).candidates
    cdef HeapEntry made
    cdef bint was_top = entry.heap_index == 1
    if is_candidate(entry):
        rank_of(tree, entry, &made.high, &made.low)
        made.item = run
        if entry.heap_index == 0:
            heap.size += 1
            entry.heap_index = heap.size
        elif same_rank(&heap.entries[entry.heap_index - 1], &made):
            return
        sift(tree, heap, entry.heap_index - 1, made)
    elif entry.heap_index:
        heap_remove(tree, heap, entry.heap_index - 1)
        entry.heap_index = 0
    if was_top or entry.heap_index == 1:
        refresh_space(tree, entry.space)
