"""The child table: linear probing, removal by shifting back, at most three quarters full.

A run keeps the seeded hash of its first page, so that growing hashes nothing again.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

from .hash_functions cimport siphash
from .tree cimport Run, Table, TableEntry, Tree, page_tokens, run_at


cdef uint64_t page_hash(const Tree *tree, const uint32_t *tokens) noexcept nogil:
    return siphash(tree.key0, tree.key1, tokens, tree.page + tree.overlap)


cdef inline uint32_t tag_of(uint32_t parent, uint64_t hash) noexcept nogil:
    """The hash is secret and even already, so that the parent need only be spread."""
    return <uint32_t> (((hash ^ parent * <uint64_t> 0x9E3779B97F4A7C15) * <uint64_t> 0xFF51AFD7ED558CCD) >> 32)


cdef inline void place(Table *table, TableEntry entry) noexcept nogil:
    cdef uint64_t mask = table.capacity - 1
    cdef uint64_t at = entry.tag & mask
    while table.entries[at].run:
        at = (at + 1) & mask
    table.entries[at] = entry


cdef int children_reserve(Tree *tree, uint64_t count) noexcept nogil:
    """Make sure that the next ``count`` additions succeed; -1 if memory is short."""
    cdef Table *table = &tree.table
    cdef Table larger
    cdef uint64_t at
    if (table.used + count) * 4 <= table.capacity * 3:
        return 0
    larger.capacity = max(table.capacity * 2, <uint64_t> 32)
    larger.used = table.used
    larger.entries = <TableEntry *> calloc(larger.capacity, sizeof(TableEntry))
    if larger.entries == NULL:
        return -1
    for at in range(table.capacity):
        if table.entries[at].run:
            place(&larger, table.entries[at])
    free(table.entries)
    tree.table = larger
    return 0


cdef void children_free(Tree *tree) noexcept nogil:
    free(tree.table.entries)
    tree.table.entries = NULL
    tree.table.capacity = tree.table.used = 0


cdef uint32_t child_find(const Tree *tree, uint32_t parent, const uint32_t *tokens) noexcept nogil:
    """The child of ``parent`` whose first page holds these tokens, or 0."""
    cdef const Run *above = run_at(tree, parent)
    cdef const Run *run
    cdef size_t size = (tree.page + tree.overlap) * sizeof(uint32_t)
    cdef uint64_t hash, mask, at
    cdef uint32_t tag, found
    if above.children == 0:
        return 0
    if above.children == 1:
        run = run_at(tree, above.child_xor)
        return above.child_xor if memcmp(page_tokens(run, run.start), tokens, size) == 0 else 0
    hash = page_hash(tree, tokens)
    tag = tag_of(parent, hash)
    mask = tree.table.capacity - 1
    at = tag & mask
    while True:
        found = tree.table.entries[at].run
        if found == 0:
            return 0
        if tree.table.entries[at].tag == tag:
            run = run_at(tree, found)
            if run.hash == hash and run.parent == parent and memcmp(page_tokens(run, run.start), tokens, size) == 0:
                return found
        at = (at + 1) & mask


cdef uint64_t index_of(const Tree *tree, uint32_t child) noexcept nogil:
    """Where the entry of a run stands; the capacity if it has none."""
    cdef const Run *run = run_at(tree, child)
    cdef uint64_t mask = tree.table.capacity - 1
    cdef uint64_t at = tag_of(run.parent, run.hash) & mask
    while tree.table.entries[at].run != child:
        if tree.table.entries[at].run == 0:
            return tree.table.capacity
        at = (at + 1) & mask
    return at


cdef void child_add(Tree *tree, uint32_t child) noexcept nogil:
    """List a run below its parent. Reserved before, so it cannot fail."""
    cdef const Run *run = run_at(tree, child)
    cdef Run *parent = run_at(tree, run.parent)
    cdef TableEntry entry
    entry.run = child
    entry.tag = tag_of(run.parent, run.hash)
    place(&tree.table, entry)
    tree.table.used += 1
    parent.children += 1
    parent.child_xor ^= child


cdef void child_remove(Tree *tree, uint32_t child) noexcept nogil:
    cdef Run *parent = run_at(tree, run_at(tree, child).parent)
    cdef TableEntry *entries = tree.table.entries
    cdef uint64_t mask = tree.table.capacity - 1
    cdef uint64_t hole = index_of(tree, child)
    cdef uint64_t at = (hole + 1) & mask
    while entries[at].run:
        # An entry may fill the hole if its wish lies no later than the hole, going round.
        if ((at - (entries[at].tag & mask)) & mask) >= ((at - hole) & mask):
            entries[hole] = entries[at]
            hole = at
        at = (at + 1) & mask
    entries[hole].run = 0
    tree.table.used -= 1
    parent.children -= 1
    parent.child_xor ^= child


cdef bint child_is_listed(const Tree *tree, uint32_t child) noexcept nogil:
    return tree.table.capacity != 0 and index_of(tree, child) != tree.table.capacity
