"""Slabs: arrays of equal items named by a 32-bit id, with a list of the free ones. Item 0 stands for "none".

A slab may have a column: more about each item, under the same id, in an array of its own.
"""

from libc.stdint cimport uint32_t


cdef struct Slab:
    char *items
    char *column
    size_t item_size
    size_t column_size   # 0: no column
    uint32_t capacity    # items that there is room for, item 0 included
    uint32_t used        # ids below it were handed out at some time; never 0
    uint32_t free        # head of the list of free items, linked through the first word of each; 0: none
    uint32_t free_count


cdef void slab_init(Slab *slab, size_t item_size, size_t column_size) noexcept nogil
cdef void slab_free(Slab *slab) noexcept nogil
cdef int slab_grow(Slab *slab, uint32_t count) noexcept nogil


cdef inline int slab_reserve(Slab *slab, uint32_t count) noexcept nogil:
    """Make sure that the next ``count`` takes succeed; -1 if memory is short. Moves the items."""
    if slab.free_count + (slab.capacity - slab.used) >= count:
        return 0
    return slab_grow(slab, count)


cdef inline uint32_t slab_take(Slab *slab) noexcept nogil:
    """An item with undefined contents. Reserved before, so it cannot fail."""
    cdef uint32_t item = slab.free
    if item:
        slab.free = (<uint32_t *> (slab.items + item * slab.item_size))[0]
        slab.free_count -= 1
    else:
        item = slab.used
        slab.used += 1
    return item


cdef inline void slab_give(Slab *slab, uint32_t item) noexcept nogil:
    (<uint32_t *> (slab.items + item * slab.item_size))[0] = slab.free
    slab.free = item
    slab.free_count += 1


cdef inline uint32_t slab_live(const Slab *slab) noexcept nogil:
    """How many items are in use."""
    return slab.used - 1 - slab.free_count


cdef inline size_t slab_bytes(const Slab *slab) noexcept nogil:
    return slab.capacity * (slab.item_size + slab.column_size)
