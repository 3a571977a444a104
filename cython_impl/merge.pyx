"""Merging runs that have no branch between them.

No result depends on it, so it asks for memory, and lets it be if there is none.
"""

from libc.stdint cimport int64_t, uint32_t

from .births cimport births_move
from .children cimport child_remove, child_replace, only_child
from .log cimport GONE, MERGE, note
from .marks cimport MERGED_MARKS, marks_prune, merged_mark_count, prune_all, top_mark
from .node cimport copy_window, hide, show, spare_memory
from .slab cimport slab_give
from .span cimport (
    CONSECUTIVE, NARROW, WIDE, Span, are_narrow, first_slot, span_bytes, span_free, span_make_digests, span_new,
)
from .tree cimport MOST_PENDING, Detail, Run, Tree, detail_of, has_locked_pages, length_of_run, mark_of, run_at

cdef enum:
    CHAIN = 8            # runs of a size class that make one of the next
    CHAIN_BITS = 3

cdef extern from *:
    int __builtin_clzll(unsigned long long) noexcept nogil


cdef inline int size_class(int64_t units) noexcept nogil:
    """Runs of one class differ at most by the factor `CHAIN`."""
    return (63 - __builtin_clzll(units)) // CHAIN_BITS


cdef inline uint32_t alone_above(const Tree *tree, uint32_t run) noexcept nogil:
    """The run above, if it has no other child and is no root; else 0."""
    cdef uint32_t upper = run_at(tree, run).parent
    return upper if run_at(tree, upper).parent and only_child(run_at(tree, upper)) == run else 0


cdef bint is_hashed(const Tree *tree, uint32_t run) noexcept nogil:
    """Whether all of its pages have their digest."""
    return detail_of(tree, run).hashed * tree.page == length_of_run(run_at(tree, run))


cdef uint32_t joined_form(const Tree *tree, const uint32_t *runs, int count) noexcept nogil:
    """The smallest form for the slots of runs of which each hangs below the one before."""
    cdef const Detail *detail
    cdef int64_t length, first
    cdef int64_t expected = 0
    cdef bint narrow = True
    cdef bint consecutive = True
    cdef int i
    for i in range(count):
        detail = detail_of(tree, runs[i])
        length = length_of_run(run_at(tree, runs[i]))
        narrow = narrow and are_narrow(detail.span, detail.offset, length)
        if detail.span.form != CONSECUTIVE:
            consecutive = False
            continue
        first = first_slot(detail.span, detail.offset)
        consecutive = consecutive and (i == 0 or first == expected)
        expected = first_slot(detail.span, detail.offset + length)
    if consecutive:
        return CONSECUTIVE
    return NARROW if narrow else WIDE


cdef Span *joined(Tree *tree, const uint32_t *runs, int count) noexcept nogil:
    """A new span of the pages of runs of which each hangs below the one before; NULL if memory is short."""
    cdef int64_t length = 0
    cdef uint32_t form = joined_form(tree, runs, count)
    cdef bint digests = True
    cdef Span *span
    cdef int i
    for i in range(count):
        length += length_of_run(run_at(tree, runs[i]))
    span = span_new(length, tree.overlap, form)
    if span == NULL:
        return NULL
    if detail_of(tree, runs[0]).hashed and span_make_digests(span, tree.page):
        span_free(span)
        return NULL
    length = 0
    for i in range(count):
        # Digests count from the first page on without a gap.
        copy_window(tree, runs[i], span, length, digests and span.digests != NULL)
        digests = digests and is_hashed(tree, runs[i])
        length += length_of_run(run_at(tree, runs[i]))
    return span


cdef void absorb(Tree *tree, uint32_t upper, uint32_t lower) noexcept nogil:
    """Everything but the windows goes from ``upper`` to ``lower``: place, marks, births, locks, count of digests."""
    cdef Run *above = run_at(tree, upper)
    cdef Run *below = run_at(tree, lower)
    cdef uint32_t top = top_mark(tree, lower)
    if is_hashed(tree, upper):
        detail_of(tree, lower).hashed += detail_of(tree, upper).hashed
    else:
        detail_of(tree, lower).hashed = detail_of(tree, upper).hashed
    if not has_locked_pages(tree, lower):
        detail_of(tree, lower).locked_end = detail_of(tree, upper).locked_end
    note(tree, MERGE, length_of_run(above), <int64_t> below.end - below.start)
    note(tree, GONE, above.start, 0)
    births_move(tree, above.marks, 0, upper, lower)
    mark_of(tree, top).above = above.marks
    detail_of(tree, lower).mark_count += detail_of(tree, upper).mark_count
    child_remove(tree, lower)
    child_replace(tree, upper, lower)
    below.start = above.start
    detail_of(tree, lower).chain = 0
    detail_of(tree, upper).space = 0
    slab_give(&tree.runs, upper)
    marks_prune(tree, lower, top)


cdef bint merge_windows(Tree *tree, uint32_t upper, uint32_t lower) noexcept nogil:
    """Let ``lower`` show the pages of both. False if the windows stay apart: too long a copy, or no memory for it.

    Its depths stay what they are: `absorb` comes next.
    """
    cdef Detail *above = detail_of(tree, upper)
    cdef Detail *below = detail_of(tree, lower)
    cdef int64_t length = length_of_run(run_at(tree, upper))
    cdef uint32_t[2] runs
    cdef Span *span = above.span
    if span == below.span and above.offset + length == below.offset:
        hide(tree, upper)
        span.live += <uint32_t> length
        below.offset = above.offset
        run_at(tree, lower).tokens = run_at(tree, upper).tokens
        return True
    if length // 2 > length_of_run(run_at(tree, lower)):
        return False
    runs[0] = upper
    runs[1] = lower
    return copy_together(tree, runs, 2)


cdef bint copy_together(Tree *tree, const uint32_t *runs, int count) noexcept nogil:
    """Let the last of the runs show the pages of all, and the others none. False if memory is short."""
    cdef Span *span = joined(tree, runs, count)
    cdef Span *old
    cdef uint32_t lower = runs[count - 1]
    cdef int i
    if span == NULL:
        return False
    tree.span_bytes += span_bytes(span, tree.page, tree.overlap)
    for i in range(count):
        old = detail_of(tree, runs[i]).span
        if hide(tree, runs[i]):
            # Only runs of other paths still show it, or the next ones here, which are about to go.
            if i + 1 == count or detail_of(tree, runs[i + 1]).span != old:
                spare_memory(tree, old)
    show(tree, lower, span, 0)
    span.live = span.size
    return True


cdef void merge_upwards(Tree *tree, uint32_t run) noexcept nogil:
    """Make a run one with the runs above it as far as they have no other child and the copying pays.

    It keeps its identity. Windows that lie side by side join for nothing; others are copied, but only if the upper one
    is not longer than twice the lower.
    """
    cdef uint32_t upper = alone_above(tree, run)
    while upper and merged_mark_count(tree, upper, run) <= MERGED_MARKS and merge_windows(tree, upper, run):
        absorb(tree, upper, run)
        upper = alone_above(tree, run)


cdef void merge_later(Tree *tree, uint32_t run) noexcept nogil:
    """Prune, and `merge_upwards`, with the next change or soon: no match waits for it, unless many have left theirs."""
    if tree.pending_count and tree.pending[tree.pending_count - 1] == run:
        return
    if tree.pending_count == MOST_PENDING:
        merge_pending(tree)
    if tree.pending_count == 0:
        tree.pending_since = tree.clock
    tree.pending[tree.pending_count] = run
    tree.pending_count += 1


cdef void merge_pending(Tree *tree) noexcept nogil:
    """What `merge_later` left. A run may be gone meanwhile, and another have its id, which does no harm."""
    cdef uint32_t i
    for i in range(tree.pending_count):
        if detail_of(tree, tree.pending[i]).space and run_at(tree, tree.pending[i]).parent:
            prune_all(tree, tree.pending[i])
            merge_upwards(tree, tree.pending[i])
    tree.pending_count = 0


cdef bint merge_many(Tree *tree, uint32_t run) noexcept nogil:
    """Make one run of ``run`` and the runs above it that count as its chain. False if there is nothing to merge."""
    cdef uint32_t[CHAIN] path
    cdef int first = CHAIN - 1
    cdef int i
    cdef uint32_t marks = detail_of(tree, run).mark_count
    cdef int left = min(<int> detail_of(tree, run).chain, <int> CHAIN) - 1
    cdef uint32_t upper = alone_above(tree, run)
    path[first] = run
    while left and upper:
        marks += detail_of(tree, upper).mark_count
        if marks > MERGED_MARKS:
            break
        first -= 1
        path[first] = upper
        left -= 1
        upper = alone_above(tree, upper)
    if first == CHAIN - 1 or not copy_together(tree, path + first, CHAIN - first):
        return False
    for i in range(CHAIN - 2, first - 1, -1):
        absorb(tree, path[i], run)
    return True


cdef void merge_chain(Tree *tree, uint32_t run) noexcept nogil:
    """After a run was hung below one that had no child: a sequence that grows by turns stands in a chain of runs.

    Not each turn is copied at once: only when `CHAIN` runs of the same size class (or smaller ones below) have come
    together they become one, of the next class. So a token is copied once for each class that it passes, and a path
    without branches stands in at most `CHAIN` runs of each class.
    """
    cdef uint32_t upper
    cdef Detail *detail = detail_of(tree, run)
    while True:
        upper = alone_above(tree, run)
        detail.chain = 1
        if upper and (
            size_class(length_of_run(run_at(tree, upper))) <= size_class(length_of_run(run_at(tree, run)))
        ):
            detail.chain = min(<int> detail_of(tree, upper).chain, <int> CHAIN) + 1
        if detail.chain < CHAIN or not merge_many(tree, run):
            return
