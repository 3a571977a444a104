"""`check()`: everything that is kept step by step is computed anew and compared. O(cached), and no recursion."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

from triradix.errors import IntegrityError

from .children cimport child_find, child_is_listed, hash_of_stored
from .hash_functions cimport DIGEST, page_digest
from .heap cimport is_candidate, rank_of
from .key cimport Key
from .locks cimport deepest_lock
from .marks cimport MOST_MARKS
from .slab cimport slab_live
from .spaces cimport Forest
from .span cimport Span, span_bytes
from .tree cimport (
    Heap, HeapEntry, Mark, Run, Space, Tree, birth_at, has_locked_pages, mark_of, page_digest_after, page_tokens,
    run_at, space_at,
)


cdef struct Census:          # what the runs say of one another, by id
    uint32_t *children
    uint32_t *child_xor
    uint32_t *locked_children
    int64_t *deepest         # of each birth: the end of its deepest segment …
    uint32_t *holder         # … and the run that holds it
    int64_t *space_total
    int64_t *space_locked
    int64_t runs             # without roots
    int64_t marks
    int64_t span_bytes
    int64_t candidates


cdef object check_forest(Forest forest):
    cdef Census census
    cdef const char *broken
    cdef Tree *tree = &forest.tree
    cdef object message = None
    forest.enter()
    census.children = <uint32_t *> calloc(tree.runs.used, sizeof(uint32_t))
    census.child_xor = <uint32_t *> calloc(tree.runs.used, sizeof(uint32_t))
    census.locked_children = <uint32_t *> calloc(tree.runs.used, sizeof(uint32_t))
    census.deepest = <int64_t *> calloc(tree.births.used, sizeof(int64_t))
    census.holder = <uint32_t *> calloc(tree.births.used, sizeof(uint32_t))
    census.space_total = <int64_t *> calloc(tree.spaces.used, sizeof(int64_t))
    census.space_locked = <int64_t *> calloc(tree.spaces.used, sizeof(int64_t))
    census.runs = census.marks = census.span_bytes = census.candidates = 0
    if (
        census.children == NULL or census.child_xor == NULL or census.locked_children == NULL or census.deepest == NULL
        or census.holder == NULL or census.space_total == NULL or census.space_locked == NULL
    ):
        broken = NULL
        message = MemoryError()
    else:
        broken = check_tree(tree, &census)
        if broken == NULL and len(forest.names) != slab_live(&tree.spaces):
            broken = "names: not one for each space"
    free(census.children)
    free(census.child_xor)
    free(census.locked_children)
    free(census.deepest)
    free(census.holder)
    free(census.space_total)
    free(census.space_locked)
    if message is not None:
        raise message
    if broken != NULL:
        raise IntegrityError(broken.decode())


cdef const char *check_tree(const Tree *tree, Census *census) noexcept nogil:
    """The invariant that broke, or NULL."""
    cdef const char *broken
    cdef uint32_t at
    cdef const Run *run
    for at in range(1, tree.runs.used):
        run = run_at(tree, at)
        if run.space and run.parent:
            broken = check_run(tree, at, run, census)
            if broken != NULL:
                return broken
    for at in range(1, tree.runs.used):
        run = run_at(tree, at)
        if run.space:
            if run.children != census.children[at] or run.child_xor != census.child_xor[at]:
                return "runs: the count or the XOR of the children is wrong"
            if run.locked_children != census.locked_children[at]:
                return "locks: the count of children with locked pages is wrong"
            if run.parent == 0 and (run.end or run.marks or run.span != NULL or space_at(tree, run.space).root != at):
                return "spaces: a root is not empty, or not the root of its space"
    if slab_live(&tree.runs) != census.runs + slab_live(&tree.spaces):
        return "runs: the slab does not hold the runs of the tree and one root for each space"
    if slab_live(&tree.marks) != census.marks:
        return "marks: the slab does not hold just the marks of the runs"
    if tree.table.used != <uint64_t> census.runs:
        return "children: the table does not hold just one entry for each run"
    if tree.span_bytes != census.span_bytes:
        return "spans: memory is miscounted"
    broken = check_births(tree, census)
    if broken == NULL:
        broken = check_spaces(tree, census)
    return broken


cdef const char *check_run(const Tree *tree, uint32_t at, const Run *run, Census *census) noexcept nogil:
    cdef const Run *parent = run_at(tree, run.parent)
    cdef int64_t length = run.end - run.start
    cdef const char *broken
    cdef int64_t high, low, common
    cdef Key stored
    cdef const Heap *heap
    if parent.space != run.space or parent.end != run.start:
        return "runs: a run does not begin where its parent ends"
    if length <= 0 or length % tree.page or run.offset % tree.page:
        return "runs: a window is not of whole pages"
    if run.span == NULL or run.offset < 0 or run.offset + length > run.span.size:
        return "spans: a window goes beyond its span"
    if run.hash != hash_of_stored(tree, at):
        return "children: the hash of a first page is wrong"
    stored.data = page_tokens(run, run.start)
    stored.count = length + tree.overlap
    stored.wide = False
    if not child_is_listed(tree, at) or child_find(tree, run.parent, stored, &common) != at or common != stored.count:
        return "children: a run is not found below its parent"
    if tree.overlap and parent.parent and page_tokens(parent, parent.end)[0] != page_tokens(run, run.start)[0]:
        return "runs: bigrams of a run and its parent do not join"
    census.runs += 1
    census.children[run.parent] += 1
    census.child_xor[run.parent] ^= at
    census.space_total[run.space] += length
    if has_locked_pages(run):
        census.locked_children[run.parent] += 1
        census.space_locked[run.space] += run.locked_end - run.start
        if parent.parent and parent.locked_end != parent.end:
            return "locks: a page above a locked one is not locked"
    if max(run.locked_end, run.start) != deepest_lock(tree, at):
        return "locks: locked_end is not where the locks reach"
    heap = &space_at(tree, run.space).candidates
    if is_candidate(run) != (run.heap_index != 0):
        return "eviction: a run is a candidate and not in the heap, or in it and none"
    if run.heap_index:
        census.candidates += 1
        rank_of(tree, run, &high, &low)
        if run.heap_index > heap.size or heap.entries[run.heap_index - 1].item != at:
            return "eviction: a run does not know its place in the heap"
        if heap.entries[run.heap_index - 1].high != high or heap.entries[run.heap_index - 1].low != low:
            return "eviction: the heap holds an old rank"
    broken = check_marks(tree, at, run, census)
    if broken == NULL:
        broken = check_window(tree, run, census)
    if broken == NULL:
        broken = check_digests(tree, run, parent)
    return broken


cdef const char *check_marks(const Tree *tree, uint32_t at, const Run *run, Census *census) noexcept nogil:
    cdef int64_t depth = run.start
    cdef uint32_t count = 0
    cdef uint32_t previous = 0
    cdef uint32_t mark = run.first_mark
    cdef const Mark *entry
    while mark:
        entry = mark_of(tree, mark)
        count += 1
        if entry.previous != previous or entry.end <= depth or entry.end % tree.page:
            return "marks: not sorted by depth, or not on pages"
        if entry.locks < 0 or entry.last > tree.clock:
            return "marks: a count below zero, or a tick of the future"
        if entry.birth == 0 or entry.birth >= tree.births.used or birth_at(tree, entry.birth).creation == 0:
            return "births: a segment is of a birth that is over"
        if entry.end > census.deepest[entry.birth]:
            census.deepest[entry.birth] = entry.end
            census.holder[entry.birth] = at
        depth = entry.end
        previous = mark
        mark = entry.next
    if count == 0 or count != run.marks or count > MOST_MARKS or previous != run.last_mark or depth != run.end:
        return "marks: miscounted, or the last one is not where the run ends"
    census.marks += count
    return NULL


cdef const char *check_window(const Tree *tree, const Run *run, Census *census) noexcept nogil:
    """The list of a span's windows, walked once: from its first run."""
    cdef const Span *span = run.span
    cdef const Run *shown
    cdef int64_t live = 0
    cdef uint32_t previous = 0
    cdef uint32_t at = span.first_run
    if run.span_previous:
        return NULL
    while at:
        shown = run_at(tree, at)
        if shown.span != span or shown.span_previous != previous:
            return "spans: the list of windows is broken"
        live += shown.end - shown.start
        previous = at
        at = shown.span_next
    if live != span.live:
        return "spans: the units that are shown are miscounted"
    census.span_bytes += span_bytes(span, tree.page, tree.overlap)
    return NULL


cdef const char *check_digests(const Tree *tree, const Run *run, const Run *parent) noexcept nogil:
    """Those that are known, as far as the one above them is; that of the first page of a space depends on its name."""
    cdef int64_t _page
    cdef int64_t pages = (run.end - run.start) // tree.page
    cdef int64_t depth = run.start
    cdef const uint8_t *previous = NULL
    cdef uint8_t[DIGEST] digest
    if run.hashed < 0 or run.hashed > pages or (tree.events_on and run.hashed != pages):
        return "digests: miscounted"
    if run.hashed and parent.parent and parent.hashed * tree.page != parent.end - parent.start:
        return "digests: a page has one and the page above has none"
    if run.hashed and parent.parent:
        previous = page_digest_after(tree, parent, parent.end - tree.page)
    for _page in range(run.hashed):
        if previous != NULL:
            page_digest(previous, DIGEST, page_tokens(run, depth), tree.page, tree.overlap, digest)
            if memcmp(digest, page_digest_after(tree, run, depth), DIGEST):
                return "digests: one does not fit its page"
        previous = page_digest_after(tree, run, depth)
        depth += tree.page
    return NULL


cdef const char *check_births(const Tree *tree, const Census *census) noexcept nogil:
    cdef uint32_t at
    cdef uint32_t alive = 0
    for at in range(1, tree.births.used):
        if birth_at(tree, at).creation == 0:
            continue
        alive += 1
        if birth_at(tree, at).creation > tree.clock:
            return "births: one of the future"
        if census.deepest[at] == 0:
            return "births: one without pages"
        if census.holder[at] != birth_at(tree, at).anchor:
            return "births: an anchor is not the run of the deepest page"
    if alive != slab_live(&tree.births):
        return "births: the slab is miscounted"
    return NULL


cdef const char *check_spaces(const Tree *tree, const Census *census) noexcept nogil:
    cdef uint32_t at
    cdef int64_t total = 0
    cdef int64_t locked = 0
    cdef int64_t candidates = 0
    cdef int64_t heap_bytes = tree.space_heap.capacity * <int64_t> sizeof(HeapEntry)
    cdef uint32_t ranked = 0
    cdef const Space *space
    if tree.empty_spaces:
        return "spaces: empty ones are left"
    for at in range(1, tree.spaces.used):
        space = space_at(tree, at)
        if space.total < 0:
            continue
        if space.total == 0:
            return "spaces: one without pages"
        if space.total != census.space_total[at] or space.locked != census.space_locked[at]:
            return "sizes: the units of a space, or its locked ones, are miscounted"
        total += space.total
        locked += space.locked
        candidates += space.candidates.size
        heap_bytes += space.candidates.capacity * <int64_t> sizeof(HeapEntry)
        if not is_heap(&space.candidates):
            return "eviction: the candidates of a space are not a heap"
        if (space.heap_index != 0) != (space.candidates.size != 0):
            return "eviction: a space with candidates is not in the heap of spaces, or one without is"
        if space.heap_index:
            ranked += 1
            if space.heap_index > tree.space_heap.size or not stands_for(tree, at, space):
                return "eviction: the heap of spaces holds an old rank"
    if tree.total != total or tree.locked != locked:
        return "sizes: total or protected units are miscounted"
    if candidates != census.candidates or ranked != tree.space_heap.size:
        return "eviction: a heap holds what is no candidate"
    if heap_bytes != tree.heap_bytes:
        return "eviction: memory is miscounted"
    if not is_heap(&tree.space_heap):
        return "eviction: the spaces are not a heap"
    return NULL


cdef bint stands_for(const Tree *tree, uint32_t at, const Space *space) noexcept nogil:
    cdef const HeapEntry *entry = &tree.space_heap.entries[space.heap_index - 1]
    cdef const HeapEntry *best = &space.candidates.entries[0]
    return entry.item == at and entry.high == best.high and entry.low == best.low


cdef bint is_heap(const Heap *heap) noexcept nogil:
    """No entry is smaller than the one above it, and no two are equal."""
    cdef uint32_t at
    cdef const HeapEntry *entry
    cdef const HeapEntry *above
    for at in range(1, heap.size):
        entry = &heap.entries[at]
        above = &heap.entries[(at - 1) >> 2]
        if entry.high < above.high or (entry.high == above.high and entry.low <= above.low):
            return False
    return True
