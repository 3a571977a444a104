"""Heaps: smallest rank on top, four children to an entry. Each item is told where it stands."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc

from .tree cimport Heap, HeapEntry, Tree, detail_of, space_at


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


cdef inline bint is_before(const HeapEntry *left, const HeapEntry *right) noexcept nogil:
    return before(left.high, left.low, right.high, right.low)


cdef inline void put(Tree *tree, Heap *heap, uint32_t at, HeapEntry entry) noexcept nogil:
    heap.entries[at] = entry
    if heap.of_spaces:
        space_at(tree, entry.item).heap_index = at + 1
    else:
        detail_of(tree, entry.item).after = at


cdef void sift(Tree *tree, Heap *heap, uint32_t at, HeapEntry entry) noexcept nogil:
    """Put ``entry`` where it belongs, from the hole ``at`` on: up, else down."""
    cdef uint32_t above, child, last, best
    cdef uint32_t hole = at
    while hole:
        above = (hole - 1) >> 2
        if not is_before(&entry, &heap.entries[above]):
            break
        put(tree, heap, hole, heap.entries[above])
        hole = above
    if hole == at:
        while 4 * <uint64_t> hole + 1 < heap.size:
            best = 4 * hole + 1
            last = min(best + 4, heap.size)
            for child in range(best + 1, last):
                if is_before(&heap.entries[child], &heap.entries[best]):
                    best = child
            if not is_before(&heap.entries[best], &entry):
                break
            put(tree, heap, hole, heap.entries[best])
            hole = best
    put(tree, heap, hole, entry)


cdef void heap_add(Tree *tree, Heap *heap, HeapEntry entry) noexcept nogil:
    """The caller has reserved."""
    heap.size += 1
    sift(tree, heap, heap.size - 1, entry)


cdef void heap_set(Tree *tree, Heap *heap, uint32_t at, HeapEntry entry) noexcept nogil:
    """Give the entry at ``at`` another rank."""
    sift(tree, heap, at, entry)


cdef void heap_remove(Tree *tree, Heap *heap, uint32_t at) noexcept nogil:
    heap.size -= 1
    if at < heap.size:
        sift(tree, heap, at, heap.entries[heap.size])
