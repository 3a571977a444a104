"""The child table: linear probing, removal by shifting back, at most three quarters full.

Hash (upper half) and run of each entry stand in one word, so that a look-up reads one cache line in most cases. A run
keeps its hash, so that growing hashes nothing again. The hash is seeded for each cache: nobody can choose tokens that
collide.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from .compare cimport common_prefix, copy_tokens
from .key cimport Key, is_wide, key_count, key_from, key_of, key_token
from .tree cimport Run, Table, Tree, detail_of, length_of_run, run_at

cdef extern from *:
    """
    #include <stdint.h>

    /* Both halves of the product: each bit of either factor has a say in each bit. (The step of wyhash.) */
    static inline uint64_t folded_product(uint64_t a, uint64_t b) {
        unsigned __int128 product = (unsigned __int128) a * b;
        return (uint64_t) product ^ (uint64_t) (product >> 64);
    }
    """
    uint64_t folded_product(uint64_t, uint64_t) noexcept nogil
    void __builtin_prefetch(const void *) noexcept nogil

cdef enum:
    PART = 16            # tokens that are hashed at once
    FEWEST_ENTRIES = 32


cdef inline uint64_t hash_part(const Tree *tree, uint64_t hash, const uint32_t *tokens, int64_t count) noexcept nogil:
    """In words of two tokens; a word that is not full is filled up with zeros."""
    cdef uint64_t[2] words
    while count >= 4:
        memcpy(words, tokens, sizeof(words))
        hash = folded_product(words[0] ^ hash, words[1] ^ tree.key1)
        tokens += 4
        count -= 4
    if count:
        words[0] = words[1] = 0
        memcpy(words, tokens, count * sizeof(uint32_t))
        hash = folded_product(words[0] ^ hash, words[1] ^ tree.key1)
    return hash


cdef uint32_t page_hash(const Tree *tree, uint32_t parent, Key key) noexcept nogil:
    cdef uint32_t[PART] part
    cdef uint64_t hash
    cdef int64_t count
    cdef int64_t at = 0
    cdef int64_t page = tree.page + tree.overlap
    hash = parent ^ tree.key0
    while at < page:
        count = min(page - at, <int64_t> PART)
        if is_wide(key):
            copy_tokens(key_from(key, at), part, count)
            hash = hash_part(tree, hash, part, count)
        else:
            hash = hash_part(tree, hash, <const uint32_t *> key.data + at, count)
        at += count
    hash = folded_product(hash, tree.key0)
    return <uint32_t> (hash >> 32) ^ <uint32_t> hash


cdef inline uint32_t child_hash(const Tree *tree, uint32_t parent, Key key) noexcept nogil:
    """Of the parent and the first page of the key; the same for keys of either width."""
    cdef uint64_t hash
    if tree.page + tree.overlap == 1:
        # One word, as most often.
        hash = folded_product((<uint64_t> parent << 32 | key_token(key, 0)) ^ tree.key0, tree.key1)
        return <uint32_t> (hash >> 32) ^ <uint32_t> hash
    return page_hash(tree, parent, key)


cdef uint32_t hash_of_stored(const Tree *tree, uint32_t run) noexcept nogil:
    """The hash of a run by its parent and its tokens."""
    cdef const Run *entry = run_at(tree, run)
    return child_hash(tree, entry.parent, key_of(entry.tokens, length_of_run(entry) + tree.overlap, False))


cdef inline uint64_t entry_of(const Tree *tree, uint32_t run) noexcept nogil:
    return <uint64_t> detail_of(tree, run).hash << 32 | run


cdef inline void place(Table *table, uint64_t entry) noexcept nogil:
    cdef uint64_t mask = table.capacity - 1
    cdef uint64_t at = (entry >> 32) & mask
    while table.entries[at]:
        at = (at + 1) & mask
    table.entries[at] = entry


cdef int children_reserve(Tree *tree, uint64_t count) noexcept nogil:
    """Make sure that the next ``count`` additions succeed; -1 if memory is short."""
    cdef Table *table = &tree.table
    cdef Table larger
    cdef uint64_t at
    if (table.used + count) * 4 <= table.capacity * 3:
        return 0
    larger.capacity = max(table.capacity * 2, <uint64_t> FEWEST_ENTRIES)
    larger.used = table.used
    larger.entries = <uint64_t *> calloc(larger.capacity, sizeof(uint64_t))
    if larger.entries == NULL:
        return -1
    for at in range(table.capacity):
        if table.entries[at]:
            place(&larger, table.entries[at])
    free(table.entries)
    tree.table = larger
    return 0


cdef void children_free(Tree *tree) noexcept nogil:
    free(tree.table.entries)
    tree.table.entries = NULL
    tree.table.capacity = tree.table.used = 0


cdef inline int64_t common_with(const Tree *tree, const Run *run, Key key) noexcept nogil:
    return common_prefix(key, run.tokens, min(length_of_run(run) + tree.overlap, key_count(key)))


cdef uint32_t child_find(const Tree *tree, uint32_t parent, Key key, int64_t *common) noexcept nogil:
    """The child of ``parent`` whose first page the key begins with, or 0, and how many tokens they share.

    The key has a page at least.
    """
    cdef const Run *above = run_at(tree, parent)
    cdef const Run *run
    cdef int64_t page = tree.page + tree.overlap
    cdef uint64_t mask, at, entry
    cdef uint32_t hash, found
    if above.children <= 1:
        found = above.child_xor
        if found:
            common[0] = common_with(tree, run_at(tree, found), key)
            if common[0] < page:
                return 0
        return found
    hash = child_hash(tree, parent, key)
    mask = tree.table.capacity - 1
    at = hash & mask
    while True:
        entry = tree.table.entries[at]
        if entry == 0:
            return 0
        if <uint32_t> (entry >> 32) == hash:
            found = <uint32_t> entry
            run = run_at(tree, found)
            if run.parent == parent:
                common[0] = common_with(tree, run, key)
                if common[0] >= page:
                    return found
        at = (at + 1) & mask


cdef uint32_t child_ahead(const Tree *tree, uint32_t parent, Key key) noexcept nogil:
    """Ask for the line where a child would be found; returns what `child_guess` wants to know."""
    cdef uint32_t hash
    if run_at(tree, parent).children <= 1:
        return 0
    hash = child_hash(tree, parent, key)
    __builtin_prefetch(&tree.table.entries[hash & (tree.table.capacity - 1)])
    return hash


cdef uint32_t child_guess(const Tree *tree, uint32_t parent, uint32_t hash) noexcept nogil:
    """The run that most likely is the child, without a look at it; 0 if there is none."""
    cdef const Run *above = run_at(tree, parent)
    cdef uint64_t mask = tree.table.capacity - 1
    cdef uint64_t at = hash & mask
    if above.children <= 1:
        return above.child_xor
    while tree.table.entries[at] and <uint32_t> (tree.table.entries[at] >> 32) != hash:
        at = (at + 1) & mask
    return <uint32_t> tree.table.entries[at]


cdef void entry_ahead(const Tree *tree, uint32_t child) noexcept nogil:
    """Ask for the line where the entry of a run stands."""
    __builtin_prefetch(&tree.table.entries[detail_of(tree, child).hash & (tree.table.capacity - 1)])


cdef uint64_t index_of(const Tree *tree, uint32_t child) noexcept nogil:
    """Where the entry of a run stands; the capacity if it has none."""
    cdef uint64_t entry = entry_of(tree, child)
    cdef uint64_t mask = tree.table.capacity - 1
    cdef uint64_t at = (entry >> 32) & mask
    while tree.table.entries[at] != entry:
        if tree.table.entries[at] == 0:
            return tree.table.capacity
        at = (at + 1) & mask
    return at


cdef void child_add(Tree *tree, uint32_t child) noexcept nogil:
    """List a run, whose parent and hash stand, below its parent. Reserved before, so it cannot fail."""
    cdef Run *parent = run_at(tree, run_at(tree, child).parent)
    place(&tree.table, entry_of(tree, child))
    tree.table.used += 1
    parent.children += 1
    parent.child_xor ^= child


cdef void child_remove(Tree *tree, uint32_t child) noexcept nogil:
    cdef Run *parent = run_at(tree, run_at(tree, child).parent)
    cdef uint64_t *entries = tree.table.entries
    cdef uint64_t mask = tree.table.capacity - 1
    cdef uint64_t hole = index_of(tree, child)
    cdef uint64_t at = (hole + 1) & mask
    while entries[at]:
        # An entry may fill the hole if its wish lies no later than the hole, going round.
        if ((at - ((entries[at] >> 32) & mask)) & mask) >= ((at - hole) & mask):
            entries[hole] = entries[at]
            hole = at
        at = (at + 1) & mask
    entries[hole] = 0
    tree.table.used -= 1
    parent.children -= 1
    parent.child_xor ^= child


cdef void child_replace(Tree *tree, uint32_t old, uint32_t new) noexcept nogil:
    """Give the place of ``old`` below its parent to ``new``, which begins with the same page."""
    cdef uint64_t at = index_of(tree, old)
    cdef Run *entry = run_at(tree, new)
    detail_of(tree, new).hash = detail_of(tree, old).hash
    entry.parent = run_at(tree, old).parent
    tree.table.entries[at] = entry_of(tree, new)
    run_at(tree, entry.parent).child_xor ^= old ^ new


cdef bint child_is_listed(const Tree *tree, uint32_t child) noexcept nogil:
    return tree.table.capacity != 0 and index_of(tree, child) != tree.table.capacity
