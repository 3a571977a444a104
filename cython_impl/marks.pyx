"""Marks of one run: finding, making, pruning, folding. A list from the deepest one up, of at most `MOST_MARKS` + 1.

A page's own values are those of the marks at and below it: maximum, maximum, sum and sum.
"""

from libc.stdint cimport INT64_MIN, int64_t, uint32_t

from .slab cimport slab_give, slab_take
from .tree cimport Mark, Tree, Weight, detail_of, mark_of, run_at, weight_of


cdef uint32_t mark_make(
    Tree *tree, int64_t end, uint32_t birth, int64_t creation, uint32_t above
) noexcept nogil:
    """A mark that says nothing but where a birth ends. One mark must be reserved."""
    cdef uint32_t made = slab_take(&tree.marks)
    cdef Mark *mark = mark_of(tree, made)
    mark.last = 0
    mark.creation = creation
    mark.birth = birth
    mark.end = <uint32_t> end
    mark.locks = 0
    mark.above = above
    if tree.has_weights:
        weight_of(tree, made).priority = INT64_MIN
        weight_of(tree, made).hits = 0
    return made


cdef uint32_t segment_at(const Tree *tree, uint32_t run, int64_t depth) noexcept nogil:
    """The mark that speaks for the page that ends at ``depth``: the first one at or below it. Calls tend to end low."""
    cdef uint32_t mark = run_at(tree, run).marks
    cdef uint32_t above = mark_of(tree, mark).above
    while above and mark_of(tree, above).end >= depth:
        mark = above
        above = mark_of(tree, mark).above
    return mark


cdef uint32_t mark_at(Tree *tree, uint32_t run, int64_t depth) noexcept nogil:
    """The mark of the page that ends at ``depth``, made if need be. One mark must be reserved."""
    cdef uint32_t below = segment_at(tree, run, depth)
    cdef Mark *mark = mark_of(tree, below)
    if mark.end != depth:
        below = mark_make(tree, depth, mark.birth, mark.creation, mark.above)
        mark.above = below
        detail_of(tree, run).mark_count += 1
    return below


cdef uint32_t top_mark(const Tree *tree, uint32_t run) noexcept nogil:
    """The highest mark of a run."""
    cdef uint32_t mark = run_at(tree, run).marks
    while mark_of(tree, mark).above:
        mark = mark_of(tree, mark).above
    return mark


cdef bint is_dispensable(const Tree *tree, uint32_t mark, uint32_t below) noexcept nogil:
    """Whether a mark says nothing that ``below``, the next mark of the path, does not say as well."""
    cdef const Mark *upper = mark_of(tree, mark)
    cdef const Mark *lower = mark_of(tree, below)
    if upper.birth != lower.birth or upper.locks or upper.last > lower.last:
        return False
    return not tree.has_weights or (
        weight_of(tree, mark).hits == 0 and weight_of(tree, mark).priority <= weight_of(tree, below).priority
    )


cdef bint marks_prune(Tree *tree, uint32_t run, uint32_t mark) noexcept nogil:
    """Drop the marks above ``mark`` that say nothing more. Whether there were any.

    Without this, reads would bloat the run.
    """
    cdef uint32_t above = mark_of(tree, mark).above
    cdef bint dropped = False
    while above and is_dispensable(tree, above, mark):
        mark_of(tree, mark).above = mark_of(tree, above).above
        slab_give(&tree.marks, above)
        detail_of(tree, run).mark_count -= 1
        dropped = True
        above = mark_of(tree, mark).above
    return dropped


cdef void prune_all(Tree *tree, uint32_t run) noexcept nogil:
    """The same above every mark of a run."""
    cdef uint32_t mark = run_at(tree, run).marks
    while mark:
        marks_prune(tree, run, mark)
        mark = mark_of(tree, mark).above


cdef uint32_t merged_mark_count(const Tree *tree, uint32_t upper, uint32_t lower) noexcept nogil:
    """How many marks two neighbouring runs would have as one."""
    cdef uint32_t top = top_mark(tree, lower)
    cdef uint32_t count = detail_of(tree, upper).mark_count
    cdef uint32_t mark = run_at(tree, upper).marks
    while mark and is_dispensable(tree, mark, top):
        count -= 1
        mark = mark_of(tree, mark).above
    return count + detail_of(tree, lower).mark_count


cdef void fold(Tree *tree, uint32_t source, uint32_t target) noexcept nogil:
    """What a page that goes says, its parent says from now on. Locks are no part of it: a locked page does not go."""
    cdef Mark *mark = mark_of(tree, target)
    cdef Weight *weight
    mark.last = max(mark.last, mark_of(tree, source).last)
    if tree.has_weights:
        weight = weight_of(tree, target)
        weight.priority = max(weight.priority, weight_of(tree, source).priority)
        weight.hits += weight_of(tree, source).hits
