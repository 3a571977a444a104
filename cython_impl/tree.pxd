"""What the tree is made of: C structs that name one another by 32-bit ids. Id 0 stands for "none".

Ids stay what they are for the life of a thing; pointers do not (a slab moves when it grows). So whoever changes the
tree reserves first, which is the only step that can fail, and fetches its pointers after that.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from .slab cimport Slab
from .span cimport Span


cdef enum Policy:    # in the order of triradix.config.POLICIES
    LRU, LFU, FIFO, MRU, FILO, PRIORITY, SLRU


cdef struct Run:             # what a walk looks at: half a cache line
    const uint32_t *tokens   # from its first page on; a root has none
    uint32_t start           # depth above the first page
    uint32_t end             # depth of the last page; the window is end - start units long
    uint32_t parent          # 0: this is the root of a space
    uint32_t children
    uint32_t child_xor       # XOR of the ids of the children: the only child, if there is one
    uint32_t marks           # the deepest one, which ends where the run ends; a root has none


cdef struct Detail:          # the rest of a run, under the same id
    Span *span               # NULL at a root
    uint32_t offset          # first unit of the window in the span, a multiple of the page
    uint32_t space           # 0: this item of the slab is free
    uint32_t hash            # seeded, of the parent and the first page: its place in the child table
    uint32_t locked_end      # depth to which the pages are locked; none are if that is not below start
    uint32_t locked_children
    uint32_t hashed          # so many of the first pages have their digest in the span
    uint32_t before          # where it stands among the candidates for eviction; `queue` says how
    uint32_t after
    uint32_t span_next       # the runs that show windows of the same span
    uint32_t span_previous
    uint16_t mark_count
    uint16_t chain           # how many runs up from here may be waiting to become one with it; `merge` says when


cdef struct Mark:            # half a cache line
    int64_t last             # 0: no call ended here
    int64_t creation         # of the birth
    uint32_t birth           # of the pages between the mark above and this one
    uint32_t end             # depth of its page
    uint32_t locks
    uint32_t above           # the next mark of the run, upwards


cdef struct Weight:          # of a mark, under the same id, where the policy ranks by it
    int64_t priority         # INT64_MIN: none
    int64_t hits             # below zero where an insert took its hit back; the sum for a page never is


cdef struct Birth:
    uint32_t anchor          # the run that holds the deepest page that is left of it
    uint32_t[2] tick         # of the insert, low and high half: 12 bytes together; 0: this item of the slab is free


cdef struct HeapEntry:
    int64_t high
    int64_t low
    uint32_t item


cdef struct Heap:            # smallest rank on top, four children to an entry
    HeapEntry *entries
    uint32_t size
    uint32_t capacity
    bint of_spaces           # the items are spaces; else runs


cdef struct Queue:           # the candidates of one space
    uint32_t first           # a list of those whose ranks came in order, by rank
    uint32_t last
    Heap heap                # the others


cdef struct Space:
    uint32_t root
    uint32_t heap_index      # place in the heap of spaces, from 1; 0: it has no candidate
    uint32_t next_empty      # list of the spaces that lost their last page
    int64_t total            # units; -1: this item of the slab is free
    int64_t locked           # those of them that are locked
    Queue candidates
    PyObject *name           # a strong reference to the pair; NULL: the default namespace


cdef struct Table:           # (parent, first page) -> child
    uint64_t *entries        # hash << 32 | run; its lower bits are where the entry would like to stand; 0: free
    uint64_t capacity        # a power of two, or 0
    uint64_t used


cdef struct Event:
    Event *next
    int kind                 # 0 stored, 1 removed, 2 cleared
    bint has_parent
    int64_t parent_hash
    int64_t count            # of hashes
    int64_t tokens_count
    PyObject *name           # a strong reference to the pair of the namespace, or NULL
    int64_t *hashes
    uint32_t *tokens         # with the overlap


cdef struct Note:
    uint32_t kind
    int64_t first
    int64_t second


cdef struct Notes:           # for the log: those that nobody was told yet
    uint32_t count
    uint32_t room
    Note *notes


cdef enum:
    MOST_PENDING = 64


cdef struct Tree:
    # What it was made with.
    int64_t page
    int64_t overlap          # 1 with bigrams: a run of n units stores n + 1 tokens
    Policy policy
    int64_t slru_threshold
    bint by_last             # what the policy ranks by, and so what is written
    bint by_hits
    bint by_priority
    bint has_weights         # by_hits or by_priority
    bint events_on
    uint64_t key0            # seeds of the child table's hash
    uint64_t key1
    # What it holds.
    int64_t clock
    int64_t epoch            # a new one with each reset
    Slab runs
    Slab marks
    Slab births
    Slab spaces
    Table table
    Heap space_heap
    uint32_t empty_spaces    # head of the list
    uint32_t[MOST_PENDING] pending    # runs that may be one with those above; `merge` says when
    uint32_t pending_count
    int64_t pending_since    # tick of the first of them
    int64_t total
    int64_t locked
    int64_t span_bytes
    int64_t heap_bytes
    Event *first_event
    Event *last_event
    int64_t event_bytes
    # Statistics.
    int64_t lookups
    int64_t lookup_tokens
    int64_t hit_tokens
    int64_t inserts
    int64_t inserted_tokens
    int64_t evicted_tokens
    Notes *noted             # NULL: none


cdef struct Place:           # a page; depth 0: a root, or a namespace without pages if run is 0 too
    uint32_t run
    int64_t depth


cdef struct Handle:          # what names a page for ever, or the root of a namespace in an epoch
    int64_t length       # its depth; 0: a root
    int64_t creation     # tick of the insert that made the page; of a root the epoch
    uint32_t birth       # where the tree keeps that birth


cdef inline Run *run_at(const Tree *tree, uint32_t run) noexcept nogil:
    return <Run *> tree.runs.items + run


cdef inline Detail *detail_of(const Tree *tree, uint32_t run) noexcept nogil:
    return <Detail *> tree.runs.column + run


cdef inline Mark *mark_of(const Tree *tree, uint32_t mark) noexcept nogil:
    return <Mark *> tree.marks.items + mark


cdef inline Weight *weight_of(const Tree *tree, uint32_t mark) noexcept nogil:
    """Only where `has_weights`."""
    return <Weight *> tree.marks.column + mark


cdef inline Birth *birth_at(const Tree *tree, uint32_t birth) noexcept nogil:
    return <Birth *> tree.births.items + birth


cdef inline int64_t birth_tick(const Birth *birth) noexcept nogil:
    return <int64_t> (<uint64_t> birth.tick[1] << 32 | birth.tick[0])


cdef inline void set_birth_tick(Birth *birth, int64_t tick) noexcept nogil:
    birth.tick[0] = <uint32_t> tick
    birth.tick[1] = <uint32_t> (tick >> 32)


cdef inline Space *space_at(const Tree *tree, uint32_t space) noexcept nogil:
    return <Space *> tree.spaces.items + space


cdef inline const uint32_t *page_tokens(const Run *run, int64_t depth) noexcept nogil:
    """The tokens of a run from ``depth`` on."""
    return run.tokens + (depth - run.start)


cdef inline int64_t length_of_run(const Run *run) noexcept nogil:
    return <int64_t> run.end - run.start


cdef inline uint8_t *page_digest_after(const Tree *tree, uint32_t run, int64_t depth) noexcept nogil:
    """The digest of the page of a run that begins at ``depth``."""
    cdef const Detail *detail = detail_of(tree, run)
    return detail.span.digests + (detail.offset + (depth - run_at(tree, run).start)) // tree.page * 32


cdef inline int64_t whole_pages(const Tree *tree, int64_t units) noexcept nogil:
    return units if tree.page == 1 else units - units % tree.page


cdef inline bint has_locked_pages(const Tree *tree, uint32_t run) noexcept nogil:
    return detail_of(tree, run).locked_end > run_at(tree, run).start
