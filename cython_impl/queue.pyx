"""Candidates for eviction, by rank.

A candidate is a run without children that has pages without a lock. The pages of its tail segment have one rank, and
the ranks of two candidates differ. Ranks mostly come in order: what is touched now goes last under ``lru``, what is
made now first under ``filo``. Such a candidate is put at an end of a list, which costs the same however many there are;
the others stand in a heap. Above stands a heap of the spaces by their best candidate.
"""

from libc.stdint cimport uint32_t

from .heap cimport before, heap_add, heap_remove, heap_reserve, heap_set
from .tree cimport (
    FIFO, FILO, LFU, LRU, MRU, PRIORITY, Detail, HeapEntry, Mark, Queue, Run, Space, Tree, detail_of, mark_of, run_at,
    space_at, weight_of,
)


cdef bint is_candidate(const Tree *tree, uint32_t run) noexcept nogil:
    cdef const Run *entry = run_at(tree, run)
    return entry.children == 0 and entry.parent != 0 and max(detail_of(tree, run).locked_end, entry.start) < entry.end


cdef HeapEntry rank_of(const Tree *tree, uint32_t run) noexcept nogil:
    """The rank of the tail pages of a run; the smallest goes first."""
    cdef uint32_t at = run_at(tree, run).marks
    cdef const Mark *mark = mark_of(tree, at)
    cdef HeapEntry rank
    rank.item = run
    rank.high = 0
    if tree.policy == LRU:
        rank.low = mark.last
    elif tree.policy == LFU:
        rank.high = weight_of(tree, at).hits
        rank.low = mark.last
    elif tree.policy == FIFO:
        rank.low = mark.creation
    elif tree.policy == MRU:
        rank.low = -mark.last
    elif tree.policy == FILO:
        rank.low = -mark.creation
    elif tree.policy == PRIORITY:
        rank.high = weight_of(tree, at).priority
        rank.low = mark.last
    else:
        rank.high = weight_of(tree, at).hits >= tree.slru_threshold
        rank.low = mark.last
    return rank


cdef inline bint ranks_before(const Tree *tree, uint32_t run, HeapEntry rank) noexcept nogil:
    cdef HeapEntry own = rank_of(tree, run)
    return before(own.high, own.low, rank.high, rank.low)


cdef inline bint ranks_after(const Tree *tree, uint32_t run, HeapEntry rank) noexcept nogil:
    cdef HeapEntry own = rank_of(tree, run)
    return before(rank.high, rank.low, own.high, own.low)


cdef HeapEntry first_candidate(const Tree *tree, uint32_t space) noexcept nogil:
    """The candidate of smallest rank; item 0 if there is none."""
    cdef const Queue *queue = &space_at(tree, space).candidates
    cdef HeapEntry best
    best.item = 0
    best.high = best.low = 0
    if queue.first:
        best = rank_of(tree, queue.first)
    if queue.heap.size and (best.item == 0 or before(
        queue.heap.entries[0].high, queue.heap.entries[0].low, best.high, best.low
    )):
        best = queue.heap.entries[0]
    return best


cdef inline void link(Tree *tree, Queue *queue, uint32_t upper, uint32_t lower) noexcept nogil:
    """Let ``lower`` follow ``upper`` in the list; 0 is its end."""
    if upper:
        detail_of(tree, upper).after = lower
    else:
        queue.first = lower
    if lower:
        detail_of(tree, lower).before = upper
    else:
        queue.last = upper


cdef void dequeue(Tree *tree, uint32_t run) noexcept nogil:
    """Take a run out, if it is in."""
    cdef Detail *detail = detail_of(tree, run)
    cdef Queue *queue = &space_at(tree, detail.space).candidates
    cdef uint32_t above = detail.before
    detail.before = <uint32_t> UNQUEUED
    if above == <uint32_t> IN_HEAP:
        heap_remove(tree, &queue.heap, detail.after)
    elif above != <uint32_t> UNQUEUED:
        link(tree, queue, above, detail.after)


cdef void enqueue(Tree *tree, uint32_t run) noexcept nogil:
    """Put a candidate where its rank belongs. If there is no memory for the heap, its place in the list is searched."""
    cdef Detail *detail = detail_of(tree, run)
    cdef uint32_t above
    cdef Queue *queue = &space_at(tree, detail.space).candidates
    cdef HeapEntry rank = rank_of(tree, run)
    if detail.before == <uint32_t> IN_HEAP:
        # One that was touched may go to the list.
        if queue.last and ranks_after(tree, queue.last, rank):
            heap_set(tree, &queue.heap, detail.after, rank)
            return
    elif detail.before != <uint32_t> UNQUEUED:
        # What goes to the other end needs no look at its neighbours, which may be cold.
        if (run == queue.last or not ranks_before(tree, queue.last, rank)) and (
            (detail.before == 0 or ranks_before(tree, detail.before, rank))
            and (detail.after == 0 or ranks_after(tree, detail.after, rank))
        ):
            return
    dequeue(tree, run)
    if queue.last == 0 or ranks_before(tree, queue.last, rank):
        link(tree, queue, queue.last, run)
        link(tree, queue, run, 0)
    elif ranks_after(tree, queue.first, rank):
        link(tree, queue, run, queue.first)
        link(tree, queue, 0, run)
    elif heap_reserve(tree, &queue.heap, queue.heap.size + 1) == 0:
        detail.before = <uint32_t> IN_HEAP
        heap_add(tree, &queue.heap, rank)
    else:
        above = queue.last
        while ranks_after(tree, above, rank):
            above = detail_of(tree, above).before
        link(tree, queue, run, detail_of(tree, above).after)
        link(tree, queue, above, run)


cdef void refresh_space(Tree *tree, uint32_t space) noexcept nogil:
    """Bring the heap of spaces in line with the best candidate of one. A space reserved its place when it was made."""
    cdef Space *entry = space_at(tree, space)
    cdef HeapEntry best = first_candidate(tree, space)
    if best.item == 0:
        if entry.heap_index:
            heap_remove(tree, &tree.space_heap, entry.heap_index - 1)
            entry.heap_index = 0
        return
    best.item = space
    if entry.heap_index:
        heap_set(tree, &tree.space_heap, entry.heap_index - 1, best)
    else:
        heap_add(tree, &tree.space_heap, best)


cdef void refresh_candidate(Tree *tree, uint32_t run) noexcept nogil:
    """Let a run stand in the queue if and only if it is a candidate, and by its rank.

    O(1) in the list, else O(log n).
    """
    cdef uint32_t space = detail_of(tree, run).space
    cdef const Queue *queue = &space_at(tree, space).candidates
    cdef uint32_t first = queue.first
    cdef uint32_t top = queue.heap.entries[0].item if queue.heap.size else 0
    if is_candidate(tree, run):
        enqueue(tree, run)
    elif detail_of(tree, run).before != <uint32_t> UNQUEUED:
        dequeue(tree, run)
    else:
        return
    # Behind the same first ones nothing changes for the space.
    if (
        queue.first != first or first == run or top == run
        or top != (queue.heap.entries[0].item if queue.heap.size else 0)
    ):
        refresh_space(tree, space)
