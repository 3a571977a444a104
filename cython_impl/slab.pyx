"""Growing and freeing slabs."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, realloc

cdef uint64_t MOST = 0xFFFFFFF0    # ids are 32 bits wide, and the largest have a meaning of their own
cdef uint64_t FEWEST = 16


cdef void slab_init(Slab *slab, size_t item_size, size_t column_size) noexcept nogil:
    slab.items = slab.column = NULL
    slab.item_size = item_size
    slab.column_size = column_size
    slab.capacity = 1
    slab.used = 1
    slab.free = 0
    slab.free_count = 0


cdef void slab_free(Slab *slab) noexcept nogil:
    free(slab.items)
    free(slab.column)
    slab_init(slab, slab.item_size, slab.column_size)


cdef int slab_grow(Slab *slab, uint32_t count) noexcept nogil:
    """By a half at least, so that an item is moved O(1) times on average."""
    cdef uint64_t needed = <uint64_t> slab.used + count - slab.free_count
    cdef uint64_t capacity = slab.capacity + <uint64_t> slab.capacity // 2
    cdef void *items
    capacity = max(capacity, needed, FEWEST)
    if capacity > MOST:
        if needed > MOST:
            return -1
        capacity = MOST
    items = realloc(slab.items, capacity * slab.item_size)
    if items == NULL:
        return -1
    slab.items = <char *> items
    if slab.column_size:
        # If this fails, there is room for more items than the slab knows.
        items = realloc(slab.column, capacity * slab.column_size)
        if items == NULL:
            return -1
        slab.column = <char *> items
    slab.capacity = <uint32_t> capacity
    return 0
