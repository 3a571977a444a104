"""Births and their anchors. (creation tick, depth) names a page for ever: an insert makes at most one at each depth."""

from libc.stdint cimport int64_t, uint32_t

from .marks cimport segment_at
from .slab cimport slab_give, slab_take
from .tree cimport Birth, Run, Tree, birth_at, mark_of, run_at


cdef uint32_t birth_make(Tree *tree, uint32_t run, int64_t creation) noexcept nogil:
    """One birth must be reserved."""
    cdef uint32_t made = slab_take(&tree.births)
    cdef Birth *birth = birth_at(tree, made)
    birth.anchor = run
    birth.creation = creation
    return made


cdef void birth_shortened(Tree *tree, uint32_t birth, uint32_t mark_above, uint32_t run_above) noexcept nogil:
    """The deepest segment of a birth went: if the segment above is of the same birth it is the deepest now."""
    if mark_above and mark_of(tree, mark_above).birth == birth:
        birth_at(tree, birth).anchor = run_above
    else:
        birth_at(tree, birth).creation = 0
        slab_give(&tree.births, birth)


cdef void births_move(
    Tree *tree, uint32_t first_mark, uint32_t end_mark, uint32_t source, uint32_t target
) noexcept nogil:
    """The marks from ``first_mark`` to before ``end_mark`` (0: all) went from a run to another: so do the anchors.

    Those of a birth that goes on below stay where they are.
    """
    cdef uint32_t mark = first_mark
    cdef uint32_t stays = mark_of(tree, end_mark).birth if end_mark else 0
    cdef Birth *birth
    while mark != end_mark:
        birth = birth_at(tree, mark_of(tree, mark).birth)
        if birth.anchor == source and mark_of(tree, mark).birth != stays:
            birth.anchor = target
        mark = mark_of(tree, mark).next


cdef uint32_t find_page(const Tree *tree, uint32_t birth, int64_t creation, int64_t depth) noexcept nogil:
    """The run that holds the page; 0 if it is gone. O(1) in the deepest run of the birth, else O(runs above it)."""
    cdef uint32_t found
    cdef const Run *run
    if birth >= tree.births.used or birth_at(tree, birth).creation != creation:
        return 0
    found = birth_at(tree, birth).anchor
    run = run_at(tree, found)
    if depth > run.end:
        return 0
    if depth > run.start:
        return found if mark_of(tree, segment_at(tree, run, depth)).birth == birth else 0
    while depth <= run.start:
        found = run.parent
        run = run_at(tree, found)
    return found
