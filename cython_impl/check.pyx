"""`check()`: everything that is kept step by step is computed anew and compared. O(cached), and no recursion."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

from triradix.errors import IntegrityError

from .children cimport child_find, child_is_listed, hash_of_stored
from .hash_functions cimport DIGEST, page_digest
from .heap cimport before
from .key cimport Key, key_count, key_of
from .locks cimport deepest_lock
from .log cimport BROKEN, hand_over, note
from .marks cimport MOST_MARKS
from .queue cimport IN_HEAP, UNQUEUED, first_candidate, is_candidate, rank_of
from .slab cimport slab_live
from .spaces cimport Forest
from .span cimport WIDE, Span, span_bytes, tokens_of
from .tree cimport (
    Detail, Heap, HeapEntry, Mark, Queue, Run, Space, Tree, birth_at, birth_tick, detail_of, has_locked_pages,
    length_of_run, mark_of, page_digest_after, page_tokens, run_at, space_at,
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
        note(tree, BROKEN, 0, 0)
        if tree.noted != NULL:
            hand_over(forest)
        raise IntegrityError(broken.decode())


cdef const char *check_tree(const Tree *tree, Census *census) noexcept nogil:
    """The invariant that broke, or NULL."""
    cdef const char *broken
    cdef uint32_t at
    cdef const Run *run
    cdef const Detail *detail
    for at in range(1, tree.runs.used):
        run = run_at(tree, at)
        if detail_of(tree, at).space and run.parent:
            broken = check_run(tree, at, run, census)
            if broken != NULL:
                return broken
    for at in range(1, tree.runs.used):
        run = run_at(tree, at)
        detail = detail_of(tree, at)
        if detail.space:
            if run.children != census.children[at] or run.child_xor != census.child_xor[at]:
                return "runs: the count or the XOR of the children is wrong"
            if detail.locked_children != census.locked_children[at]:
                return "locks: the count of children with locked pages is wrong"
            if run.parent == 0 and (
                run.end or run.marks or detail.span != NULL or space_at(tree, detail.space).root != at
            ):
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
    cdef const Detail *detail = detail_of(tree, at)
    cdef int64_t length = length_of_run(run)
    cdef const char *broken
    cdef int64_t common
    cdef Key stored
    if detail_of(tree, run.parent).space != detail.space or parent.end != run.start:
        return "runs: a run does not begin where its parent ends"
    if length <= 0 or length % tree.page or detail.offset % tree.page:
        return "runs: a window is not of whole pages"
    if detail.span == NULL or detail.offset + length > detail.span.size:
        return "spans: a window goes beyond its span"
    if run.tokens != tokens_of(detail.span) + detail.offset:
        return "spans: the tokens of a run are not those of its window"
    if detail.hash != hash_of_stored(tree, at):
        return "children: the hash of a first page is wrong"
    stored = key_of(run.tokens, length + tree.overlap, False)
    if not child_is_listed(tree, at) or child_find(tree, run.parent, stored, &common) != at:
        return "children: a run is not found below its parent"
    if common != key_count(stored):
        return "children: a run is not compared with itself to its end"
    if tree.overlap and parent.parent and page_tokens(parent, parent.end)[0] != run.tokens[0]:
        return "runs: bigrams of a run and its parent do not join"
    census.runs += 1
    census.children[run.parent] += 1
    census.child_xor[run.parent] ^= at
    census.space_total[detail.space] += length
    if has_locked_pages(tree, at):
        census.locked_children[run.parent] += 1
        census.space_locked[detail.space] += detail.locked_end - run.start
        if parent.parent and detail_of(tree, run.parent).locked_end != parent.end:
            return "locks: a page above a locked one is not locked"
    if max(detail.locked_end, run.start) != deepest_lock(tree, at):
        return "locks: locked_end is not where the locks reach"
    if is_candidate(tree, at) != (detail.before != <uint32_t> UNQUEUED):
        return "eviction: a run is a candidate and not in the queue, or in it and none"
    if is_candidate(tree, at):
        census.candidates += 1
    broken = check_marks(tree, at, run, census)
    if broken == NULL:
        broken = check_window(tree, at, census)
    if broken == NULL:
        broken = check_digests(tree, at, run, parent)
    return broken


cdef const char *check_marks(const Tree *tree, uint32_t at, const Run *run, Census *census) noexcept nogil:
    cdef int64_t depth = <int64_t> run.end + 1
    cdef uint32_t count = 0
    cdef uint32_t mark = run.marks
    cdef const Mark *entry
    if mark == 0 or mark_of(tree, mark).end != run.end:
        return "marks: the last one is not where the run ends"
    while mark:
        entry = mark_of(tree, mark)
        count += 1
        if entry.end >= depth or entry.end <= run.start or entry.end % tree.page:
            return "marks: not sorted by depth, or not on pages"
        if entry.last > tree.clock:
            return "marks: a tick of the future"
        if entry.birth == 0 or entry.birth >= tree.births.used or birth_tick(birth_at(tree, entry.birth)) == 0:
            return "births: a segment is of a birth that is over"
        if entry.creation != birth_tick(birth_at(tree, entry.birth)):
            return "births: a segment with the tick of another"
        if entry.end > census.deepest[entry.birth]:
            census.deepest[entry.birth] = entry.end
            census.holder[entry.birth] = at
        depth = entry.end
        mark = entry.above
    if count != detail_of(tree, at).mark_count or count > MOST_MARKS:
        return "marks: miscounted"
    census.marks += count
    return NULL


cdef const char *check_window(const Tree *tree, uint32_t run, Census *census) noexcept nogil:
    """The list of a span's windows, walked once: from its first run."""
    cdef const Span *span = detail_of(tree, run).span
    cdef const Detail *shown
    cdef int64_t live = 0
    cdef uint32_t previous = 0
    cdef uint32_t at = span.first_run
    if detail_of(tree, run).span_previous:
        return NULL
    while at:
        shown = detail_of(tree, at)
        if shown.span != span or shown.span_previous != previous:
            return "spans: the list of windows is broken"
        live += length_of_run(run_at(tree, at))
        previous = at
        at = shown.span_next
    if live != span.live:
        return "spans: the units that are shown are miscounted"
    if span.form > WIDE:
        return "spans: slots of no known form"
    census.span_bytes += span_bytes(span, tree.page, tree.overlap)
    return NULL


cdef const char *check_digests(const Tree *tree, uint32_t at, const Run *run, const Run *parent) noexcept nogil:
    """Those that are known, as far as the one above them is; that of the first page of a space depends on its name."""
    cdef int64_t _page
    cdef int64_t pages = length_of_run(run) // tree.page
    cdef int64_t hashed = detail_of(tree, at).hashed
    cdef int64_t depth = run.start
    cdef const uint8_t *previous = NULL
    cdef uint8_t[DIGEST] digest
    if hashed > pages or (tree.events_on and hashed != pages):
        return "digests: miscounted"
    if hashed and parent.parent and detail_of(tree, run.parent).hashed * tree.page != length_of_run(parent):
        return "digests: a page has one and the page above has none"
    if hashed and parent.parent:
        previous = page_digest_after(tree, run.parent, parent.end - tree.page)
    for _page in range(hashed):
        if previous != NULL:
            page_digest(previous, DIGEST, page_tokens(run, depth), tree.page, tree.overlap, digest)
            if memcmp(digest, page_digest_after(tree, at, depth), DIGEST):
                return "digests: one does not fit its page"
        previous = page_digest_after(tree, at, depth)
        depth += tree.page
    return NULL


cdef const char *check_births(const Tree *tree, const Census *census) noexcept nogil:
    cdef uint32_t at
    cdef uint32_t alive = 0
    for at in range(1, tree.births.used):
        if birth_tick(birth_at(tree, at)) == 0:
            continue
        alive += 1
        if birth_tick(birth_at(tree, at)) > tree.clock:
            return "births: one of the future"
        if census.deepest[at] == 0:
            return "births: one without pages"
        if census.holder[at] != birth_at(tree, at).anchor:
            return "births: an anchor is not the run of the deepest page"
    if alive != slab_live(&tree.births):
        return "births: the slab is miscounted"
    return NULL


cdef const char *check_queue(const Tree *tree, uint32_t space, int64_t *count) noexcept nogil:
    """The list in the order of its ranks, the heap with the ranks that its runs have, each run where it thinks."""
    cdef const Queue *queue = &space_at(tree, space).candidates
    cdef const HeapEntry *entry
    cdef HeapEntry rank
    cdef HeapEntry previous
    cdef uint32_t before_it = 0
    cdef uint32_t run = queue.first
    cdef uint32_t at
    previous.high = previous.low = 0
    while run:
        rank = rank_of(tree, run)
        if detail_of(tree, run).space != space or not is_candidate(tree, run):
            return "eviction: what is listed is no candidate of its space"
        if detail_of(tree, run).before != before_it:
            return "eviction: a candidate has a wrong neighbour"
        if before_it and not before(previous.high, previous.low, rank.high, rank.low):
            return "eviction: the candidates are not in the order of their ranks"
        previous = rank
        before_it = run
        count[0] += 1
        run = detail_of(tree, run).after
    if queue.last != before_it:
        return "eviction: the list of candidates ends elsewhere"
    for at in range(queue.heap.size):
        entry = &queue.heap.entries[at]
        rank = rank_of(tree, entry.item)
        if detail_of(tree, entry.item).space != space or not is_candidate(tree, entry.item):
            return "eviction: what is in the heap is no candidate of its space"
        if detail_of(tree, entry.item).before != <uint32_t> IN_HEAP or detail_of(tree, entry.item).after != at:
            return "eviction: a run does not know its place in the heap"
        if entry.high != rank.high or entry.low != rank.low:
            return "eviction: the heap holds an old rank"
        count[0] += 1
    if not is_heap(&queue.heap):
        return "eviction: the candidates of a space are not a heap"
    return NULL


cdef const char *check_spaces(const Tree *tree, const Census *census) noexcept nogil:
    cdef uint32_t at
    cdef int64_t total = 0
    cdef int64_t locked = 0
    cdef int64_t candidates = 0
    cdef int64_t heap_bytes = tree.space_heap.capacity * <int64_t> sizeof(HeapEntry)
    cdef uint32_t ranked = 0
    cdef const Space *space
    cdef const char *broken
    cdef HeapEntry best
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
        heap_bytes += space.candidates.heap.capacity * <int64_t> sizeof(HeapEntry)
        broken = check_queue(tree, at, &candidates)
        if broken != NULL:
            return broken
        best = first_candidate(tree, at)
        if (space.heap_index != 0) != (best.item != 0):
            return "eviction: a space with candidates is not in the heap of spaces, or one without is"
        if space.heap_index:
            ranked += 1
            best.item = at
            if space.heap_index > tree.space_heap.size or not is_same(
                &tree.space_heap.entries[space.heap_index - 1], &best
            ):
                return "eviction: the heap of spaces holds an old rank"
    if tree.total != total or tree.locked != locked:
        return "sizes: total or protected units are miscounted"
    if candidates != census.candidates or ranked != tree.space_heap.size:
        return "eviction: a candidate is missing in the queues"
    if heap_bytes != tree.heap_bytes:
        return "eviction: memory is miscounted"
    if not is_heap(&tree.space_heap):
        return "eviction: the spaces are not a heap"
    return NULL


cdef bint is_same(const HeapEntry *left, const HeapEntry *right) noexcept nogil:
    return left.item == right.item and left.high == right.high and left.low == right.low


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
