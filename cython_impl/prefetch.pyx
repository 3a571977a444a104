"""Asking for memory before it is needed.

A look-up in a tree larger than the caches waits for one line after the other: table, run, tokens, mark, the neighbours
among the candidates. Those of different keys do not depend on each other, so a group of keys goes ahead step by step
and asks for everything that the look-ups themselves will need soon after. Nothing follows from what is seen on the way.
"""

from libc.stdint cimport int64_t, uint32_t

from .children cimport child_ahead, child_guess, entry_ahead
from .key cimport Key, key_count, key_from
from .queue cimport IN_HEAP
from .span cimport slot_size, slots_of, tokens_of
from .tree cimport Detail, Handle, Place, Run, Tree, birth_at, detail_of, length_of_run, mark_of, run_at

cdef extern from *:
    void __builtin_prefetch(const void *) noexcept nogil

cdef enum:
    HOPS = 3             # runs that each key passes
    TOKEN_LINES = 16     # lines of tokens asked for at once; the processor itself asks for those that follow
    SLOT_LINES = 16      # the same of slots
    LINE = 64


cdef struct Ahead:           # a key on its way
    Key rest
    uint32_t run             # where it is thought to be; 0: nowhere
    uint32_t hash
    bint moving


cdef void go_ahead(
    const Tree *tree, const Key *keys, const Place *roots, const Handle *known, int count
) noexcept nogil:
    """For the look-ups of up to `GROUP` keys, which begin at roots or (``known`` of length > 0) at a page."""
    cdef Ahead[GROUP] group
    cdef Ahead *ahead
    cdef int i
    for i in range(count):
        ahead = &group[i]
        ahead.rest = keys[i]
        ahead.run = roots[i].run
        ahead.moving = ahead.run != 0 and known[i].length == 0
        if known[i].length and known[i].birth < tree.births.used:
            __builtin_prefetch(birth_at(tree, known[i].birth))
    walk_ahead(tree, group, count)
    for i in range(count):
        if known[i].length and known[i].birth < tree.births.used:
            group[i].run = birth_at(tree, known[i].birth).anchor
            __builtin_prefetch(run_at(tree, group[i].run))
        if group[i].run:
            __builtin_prefetch(detail_of(tree, group[i].run))
    for i in range(count):
        if group[i].run:
            touch_ahead(tree, group[i].run)


cdef void touch_ahead(const Tree *tree, uint32_t run) noexcept nogil:
    """What a touch of a leaf needs: its last mark, and the details of its neighbours among the candidates."""
    cdef const Detail *detail = detail_of(tree, run)
    __builtin_prefetch(mark_of(tree, run_at(tree, run).marks))
    if detail.before < tree.runs.used:
        __builtin_prefetch(detail_of(tree, detail.before))
        if detail.after < tree.runs.used:
            __builtin_prefetch(detail_of(tree, detail.after))


cdef void walk_ahead(const Tree *tree, Ahead *group, int count) noexcept nogil:
    cdef Ahead *ahead
    cdef const Run *run
    cdef int64_t length
    cdef bint moving
    cdef int _hop, i, line
    for _hop in range(HOPS):
        moving = False
        for i in range(count):
            ahead = &group[i]
            if ahead.moving:
                ahead.moving = (
                    key_count(ahead.rest) >= tree.page + tree.overlap and run_at(tree, ahead.run).children != 0
                )
                if ahead.moving:
                    ahead.hash = child_ahead(tree, ahead.run, ahead.rest)
                    moving = True
        if not moving:
            return
        for i in range(count):
            ahead = &group[i]
            if ahead.moving:
                ahead.run = child_guess(tree, ahead.run, ahead.hash)
                ahead.moving = ahead.run != 0
                if ahead.moving:
                    __builtin_prefetch(run_at(tree, ahead.run))
        for i in range(count):
            ahead = &group[i]
            if ahead.moving:
                run = run_at(tree, ahead.run)
                length = <int64_t> run.end - run.start
                for line in range(min((length * 4 + LINE - 1) // LINE, <int64_t> TOKEN_LINES)):
                    __builtin_prefetch(<const char *> run.tokens + line * LINE)
                ahead.moving = length < key_count(ahead.rest)
                if ahead.moving:
                    ahead.rest = key_from(ahead.rest, length)


cdef void evict_ahead(const Tree *tree, uint32_t run) noexcept nogil:
    """Before a candidate goes: for those after it in the list, which are likely to follow, and cold.

    The next one was asked for before. Each step asks for what the one after it looks at: a run, its span, the slots.
    """
    cdef uint32_t second = after_in_list(tree, after_in_list(tree, run))
    cdef uint32_t third = after_in_list(tree, second)
    cdef uint32_t fourth = after_in_list(tree, third)
    cdef const Detail *detail
    cdef int64_t size, at, end
    if second:
        detail = detail_of(tree, second)
        size = slot_size(detail.span)
        at = detail.offset * size
        end = min(at + length_of_run(run_at(tree, second)) * size, at + SLOT_LINES * LINE)
        while at < end:
            __builtin_prefetch(slots_of(detail.span) + at)
            at += LINE
        # Where a span ends the allocator will look when it is freed.
        __builtin_prefetch(tokens_of(detail.span) + detail.span.size + tree.overlap)
    if third:
        __builtin_prefetch(detail_of(tree, third).span)
        __builtin_prefetch(mark_of(tree, run_at(tree, third).marks))
        entry_ahead(tree, third)
    if fourth:
        __builtin_prefetch(detail_of(tree, fourth))
        __builtin_prefetch(run_at(tree, fourth))


cdef inline uint32_t after_in_list(const Tree *tree, uint32_t run) noexcept nogil:
    """The candidate of the next rank; 0 if there is none, or it stands in the heap."""
    return 0 if run == 0 or detail_of(tree, run).before == <uint32_t> IN_HEAP else detail_of(tree, run).after
