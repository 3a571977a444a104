"""Splitting a run in two. Nothing is copied: both show windows of the span that was there."""

from libc.stdint cimport int64_t, uint32_t

from .births cimport births_move
from .children cimport child_add, child_replace, hash_of_stored
from .log cimport MADE, SPLIT, note
from .marks cimport MOST_MARKS, mark_make, prune_all
from .node cimport run_new, show
from .tree cimport Detail, Mark, Run, Tree, detail_of, length_of_run, mark_of, run_at


cdef uint32_t split(Tree *tree, uint32_t run, int64_t depth) noexcept nogil:
    """Make a run of the pages down to ``depth``, and return it; ``run`` keeps its identity, and what lies below.

    Nothing is copied. A run, a mark and a child must be reserved.
    """
    cdef Run *lower = run_at(tree, run)
    cdef Detail *below = detail_of(tree, run)
    cdef uint32_t made = run_new(tree, lower.parent, below.space, lower.start)
    cdef Run *upper = run_at(tree, made)
    cdef Detail *above = detail_of(tree, made)
    upper.end = <uint32_t> depth
    above.hashed = min(below.hashed, <uint32_t> (length_of_run(upper) // tree.page))
    above.locked_end = min(below.locked_end, upper.end)
    above.locked_children = below.locked_end > upper.end
    child_replace(tree, run, made)
    split_marks(tree, run, made, depth)
    below.span.live -= <uint32_t> length_of_run(upper)
    show(tree, made, below.span, below.offset)
    below.offset += <uint32_t> length_of_run(upper)
    lower.tokens += length_of_run(upper)
    lower.start = upper.end
    lower.parent = made
    below.hashed -= above.hashed
    below.hash = hash_of_stored(tree, run)
    child_add(tree, run)
    note(tree, MADE, length_of_run(upper), upper.start)
    note(tree, SPLIT, depth, length_of_run(lower))
    return made


cdef void split_marks(Tree *tree, uint32_t lower, uint32_t upper, int64_t depth) noexcept nogil:
    """Give the marks down to ``depth`` to the upper part, and the births that end there."""
    cdef uint32_t first_below = run_at(tree, lower).marks
    cdef uint32_t kept = 1
    cdef uint32_t above, moved
    cdef Mark *mark
    while mark_of(tree, first_below).above and mark_of(tree, mark_of(tree, first_below).above).end > depth:
        first_below = mark_of(tree, first_below).above
        kept += 1
    mark = mark_of(tree, first_below)
    above = mark.above
    mark.above = 0
    moved = detail_of(tree, lower).mark_count - kept
    if above == 0 or mark_of(tree, above).end != depth:
        # The cut goes through a segment: its upper part gets a mark that says nothing.
        above = mark_make(tree, depth, mark.birth, mark.creation, above)
        moved += 1
    run_at(tree, upper).marks = above
    detail_of(tree, upper).mark_count = moved
    detail_of(tree, lower).mark_count = kept
    # The birth that goes on below keeps its anchor there.
    births_move(tree, above, mark.birth, lower, upper)


cdef void limit_marks(Tree *tree, uint32_t run) noexcept nogil:
    """Split a run of too many marks in the middle of them. A run, a mark and a child must be reserved."""
    cdef uint32_t mark
    cdef uint32_t count
    cdef uint32_t _i
    if detail_of(tree, run).mark_count <= MOST_MARKS:
        return
    prune_all(tree, run)
    count = detail_of(tree, run).mark_count
    mark = run_at(tree, run).marks
    if count > MOST_MARKS // 2:
        for _i in range(count // 2):
            mark = mark_of(tree, mark).above
        split(tree, run, mark_of(tree, mark).end)
