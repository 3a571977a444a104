"""Marks of one run: finding, making, pruning, folding. Lists by depth of at most `MOST_MARKS` + 1 marks."""

from libc.stdint cimport int64_t, uint32_t

from .slab cimport slab_give, slab_take
from .tree cimport Mark, Run, Tree, mark_of, neutral


cdef uint32_t segment_at(const Tree *tree, const Run *run, int64_t depth) noexcept nogil:
    """The mark that speaks for the page that ends at ``depth``: the first one at or below it. Calls tend to end low."""
    cdef uint32_t mark = run.last_mark
    cdef uint32_t above = mark_of(tree, mark).previous
    while above and mark_of(tree, above).end >= depth:
        mark = above
        above = mark_of(tree, mark).previous
    return mark


cdef uint32_t mark_at(Tree *tree, Run *run, int64_t depth) noexcept nogil:
    """The mark of the page that ends at ``depth``, made if need be. One mark must be reserved."""
    cdef uint32_t below = segment_at(tree, run, depth)
    cdef uint32_t made
    cdef Mark *mark
    cdef Mark *next_mark = mark_of(tree, below)
    if next_mark.end == depth:
        return below
    made = slab_take(&tree.marks)
    mark = mark_of(tree, made)
    neutral(mark, depth, next_mark.birth)
    mark.next = below
    mark.previous = next_mark.previous
    if mark.previous:
        mark_of(tree, mark.previous).next = made
    else:
        run.first_mark = made
    next_mark.previous = made
    run.marks += 1
    return made


cdef void mark_drop(Tree *tree, Run *run, uint32_t mark) noexcept nogil:
    cdef Mark *dropped = mark_of(tree, mark)
    if dropped.previous:
        mark_of(tree, dropped.previous).next = dropped.next
    else:
        run.first_mark = dropped.next
    if dropped.next:
        mark_of(tree, dropped.next).previous = dropped.previous
    else:
        run.last_mark = dropped.previous
    run.marks -= 1
    slab_give(&tree.marks, mark)


cdef bint marks_prune(Tree *tree, Run *run, uint32_t lowest, uint32_t reference) noexcept nogil:
    """Drop the marks from ``lowest`` up that say no more than ``reference`` does, a mark of the run or of one below it.

    Without this, reads would bloat the run. The last mark of a run is not for it. Whether any was dropped.
    """
    cdef const Mark *deeper = mark_of(tree, reference)
    cdef const Mark *candidate
    cdef uint32_t at = lowest
    cdef uint32_t above
    cdef bint dropped = False
    while at:
        candidate = mark_of(tree, at)
        above = candidate.previous
        if (
            candidate.last <= deeper.last
            and candidate.priority <= deeper.priority
            and candidate.hits == 0
            and candidate.locks == 0
            and candidate.birth == mark_of(tree, candidate.next).birth
        ):
            mark_drop(tree, run, at)
            dropped = True
        at = above
    return dropped


cdef void fold(const Mark *source, Mark *target) noexcept nogil:
    """What a page that goes says, its parent says from now on. Locks are no part of it: a locked page does not go."""
    target.last = max(target.last, source.last)
    target.priority = max(target.priority, source.priority)
    target.hits += source.hits
