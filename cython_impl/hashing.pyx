"""Digests: each page's from the page above, on demand, from the deepest one that is known."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from .hash_functions cimport DIGEST, page_digest
from .span cimport Span, span_bytes, span_make_digests, tokens_of
from .tree cimport Detail, Place, Run, Tree, detail_of, page_digest_after, run_at


cdef void fill_digests(
    const Tree *tree, Span *span, int64_t first, int64_t end, const uint8_t *previous, int64_t previous_size
) noexcept nogil:
    """Compute the digests of the pages ``first`` … ``end`` - 1 of a span, ``previous`` being that of the page above."""
    cdef int64_t page
    cdef uint8_t *digest
    for page in range(first, end):
        digest = span.digests + page * DIGEST
        page_digest(previous, previous_size, tokens_of(span) + page * tree.page, tree.page, tree.overlap, digest)
        previous = digest
        previous_size = DIGEST


cdef const uint8_t *digest_of(const Tree *tree, Place place) noexcept nogil:
    """The digest of a page that has one."""
    return page_digest_after(tree, place.run, place.depth - tree.page)


cdef int path_digests(Tree *tree, Place place, const uint8_t *seed, int64_t seed_size, uint8_t *digests) noexcept nogil:
    """Write the digests of all pages of a path. O(runs + pages not yet hashed) beside the result; -1: no memory."""
    cdef uint32_t at = place.run
    cdef int64_t count = 0
    cdef int64_t wanted, before
    cdef uint32_t *runs
    cdef const uint8_t *previous = seed
    cdef int64_t previous_size = seed_size
    cdef const Run *run
    cdef Detail *detail
    while run_at(tree, at).parent:
        count += 1
        at = run_at(tree, at).parent
    runs = <uint32_t *> malloc((count + 1) * sizeof(uint32_t))
    if runs == NULL:
        return -1
    runs[count] = at
    at = place.run
    for i in range(count):
        runs[i] = at
        at = run_at(tree, at).parent
    while count:
        count -= 1
        at = runs[count]
        run = run_at(tree, at)
        detail = detail_of(tree, at)
        wanted = (min(<int64_t> run.end, place.depth) - run.start) // tree.page
        if detail.hashed < wanted:
            before = span_bytes(detail.span, tree.page, tree.overlap)
            if span_make_digests(detail.span, tree.page):
                free(runs)
                return -1
            tree.span_bytes += span_bytes(detail.span, tree.page, tree.overlap) - before
            if detail.hashed:
                previous = page_digest_after(tree, at, run.start + (detail.hashed - 1) * tree.page)
                previous_size = DIGEST
            before = detail.offset // tree.page
            fill_digests(tree, detail.span, before + detail.hashed, before + wanted, previous, previous_size)
            detail.hashed = <uint32_t> wanted
        memcpy(digests, page_digest_after(tree, at, run.start), wanted * DIGEST)
        digests += wanted * DIGEST
        previous = page_digest_after(tree, at, run.start + (wanted - 1) * tree.page)
        previous_size = DIGEST
    free(runs)
    return 0
