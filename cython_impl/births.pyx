"""Births and their anchors. (creation tick, depth) names a page for ever: an insert makes at most one at each depth."""

from libc.stdint cimport int64_t, uint32_t

from .marks cimport segment_at
from .slab cimport slab_give, slab_take
from .tree cimport Birth, Run, Tree, birth_at, birth_tick, mark_of, run_at, set_birth_tick


cdef uint32_t birth_make(Tree *tree, uint32_t run, int64_t creation) noexcept nogil:
    """One birth must be reserved."""
    cdef uint32_t made = slab_take(&tree.births)
    birth_at(tree, made).anchor = run
    set_birth_tick(birth_at(tree, made), creation)
    return made


cdef void birth_shortened(Tree *tree, uint32_t birth, uint32_t mark_above, uint32_t run_above) noexcept nogil:
    """The deepest segment of a birth went: if the segment above is of the same birth it is the deepest now."""
    if mark_above and mark_of(tree, mark_above).birth == birth:
        birth_at(tree, birth).anchor = run_above
    else:
        set_birth_tick(birth_at(tree, birth), 0)
        slab_give(&tree.births, birth)


cdef void births_move(Tree *tree, uint32_t mark, uint32_t stays, uint32_t source, uint32_t target) noexcept nogil:
    """The marks from ``mark`` up went from a run to another: so do the anchors, but that of the birth ``stays``."""
    cdef Birth *birth
    while mark:
        birth = birth_at(tree, mark_of(tree, mark).birth)
        if birth.anchor == source and mark_of(tree, mark).birth != stays:
            birth.anchor = target
        mark = mark_of(tree, mark).above


cdef uint32_t find_page(const Tree *tree, uint32_t birth, int64_t creation, int64_t depth) noexcept nogil:
    """The run that holds the page; 0 if it is gone. O(1) in the deepest run of the birth, else O(runs above it)."""
    cdef uint32_t found
    cdef const Run *run
    if birth >= tree.births.used or birth_tick(birth_at(tree, birth)) != creation:
        return 0
    found = birth_at(tree, birth).anchor
    run = run_at(tree, found)
    if depth > run.end:
        return 0
    if depth > run.start:
        return found if mark_of(tree, segment_at(tree, found, depth)).birth == birth else 0
    while depth <= run.start:
        found = run.parent
        run = run_at(tree, found)
    return found
