"""Every invariant of the tree, recomputed from scratch."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from triradix.errors import IntegrityError
from triradix.reference.births import Birth, find
from triradix.reference.node import Run
from triradix.reference.split import MOST_MARKS

if TYPE_CHECKING:
    from triradix.reference.tree import Tree


def check(tree: Tree) -> None:
    """Raise IntegrityError with the invariant that broke. O(cached), without recursion."""
    runs = list(tree.runs())
    for run in runs:
        _check_window(tree, run)
        _check_marks(tree, run)
        _check_reads(tree, run)
        _check_locks(run)
        _check_digests(tree, run)
    _check_spaces(tree)
    _check_births(tree, runs)
    _check_spans(tree, runs)
    _check_queues(tree, runs)
    _check_counts(tree, runs)
    _require(not tree.undo, "nothing is kept for undoing between operations")


def _require(holds: bool, invariant: str, where: Run | None = None) -> None:
    if not holds:
        place = "" if where is None else f", in the run ({where.start}, {where.end}] of {where.space.namespace!r}"
        raise IntegrityError(f"broken invariant: {invariant}{place}")


def _check_window(tree: Tree, run: Run) -> None:
    size, span, parent = tree.page_size, run.span, run.parent
    _require(parent is not None and parent.space is run.space, "a run has a parent in its space", run)
    assert parent is not None
    _require(run.start == parent.end, "a run begins where its parent ends", run)
    _require(
        run.start < run.end and run.start % size == 0 == run.end % size, "a run has whole pages, at least one", run
    )
    _require(span.base <= run.start and run.end <= span.base + len(span.slots), "a run lies within its span", run)
    _require(len(span.words) == 4 * (len(span.slots) + tree.overlap), "a span has a slot for each unit", run)
    _require(parent.children.get(run.first_page(size)) is run, "a run is the child of its first page", run)
    if tree.overlap and not parent.is_root:
        _require(
            parent.span.last_token(run.start) == run.first_page(size)[:4], "bigrams of a path share their tokens", run
        )


def _check_marks(tree: Tree, run: Run) -> None:
    ends = [mark.end for mark in run.marks]
    _require(all(a < b for a, b in pairwise([run.start, *ends])), "marks are sorted by their ends", run)
    _require(all(end % tree.page_size == 0 for end in ends), "a mark ends with a page", run)
    _require(len(ends) <= MOST_MARKS, "a run has few marks", run)
    for mark in run.marks:
        _require(mark.locks >= 0, "a mark has no negative locks", run)
        _require(0 < mark.birth <= tree.counts.clock, "a birth is in the past", run)


def _check_reads(tree: Tree, run: Run) -> None:
    clock = tree.counts.clock
    _require(0 <= run.last <= clock, "a run was used in the past", run)
    if run.reads is None:
        return
    ends, ticks = list(run.reads.ends), list(run.reads.ticks)
    _require(len(ends) == len(ticks), "a read has an end and a tick", run)
    _require(all(a > b for a, b in pairwise([*ends, run.start])), "the ends of reads fall to the start of the run", run)
    _require(all(a < b for a, b in pairwise([0, *ticks, clock + 1])), "the ticks of reads rise, to now at most", run)
    for end, tick in zip(ends, ticks, strict=True):
        _require(end % tree.page_size == 0, "a read ends with a page", run)
        _require(tick <= run.last or end < run.end, "a read that says something ends inside the run", run)


def _check_locks(run: Run) -> None:
    locked_children = sum(child.locked_end > child.start for child in run.children.values())
    _require(run.locked_children == locked_children, "a run counts its children with locked pages", run)
    own = max((mark.end for mark in run.marks if mark.locks), default=run.start)
    _require(run.locked_end == (run.end if locked_children else own), "a run is locked to its deepest lock", run)


def _check_digests(tree: Tree, run: Run) -> None:
    pages = (run.end - run.start) // tree.page_size
    _require(len(run.digests) <= pages, "a run has no more digests than pages", run)
    if tree.keeps_events:
        _require(len(run.digests) == pages, "with events on, every page has its digest", run)


def _check_spaces(tree: Tree) -> None:
    for namespace, space in tree.spaces.items():
        root = space.root
        _require(space.namespace == namespace and root.space is space, "a space stands under its namespace")
        _require(bool(root.children), "a space has pages", root)
        _require(root.start == root.end == 0 and not root.inner and root.parent is None, "a root has no pages", root)
        _require(not root.locked_end and not root.locked_children, "a root has no locks", root)


def _check_births(tree: Tree, runs: list[Run]) -> None:
    deepest: dict[Birth, tuple[int, Run]] = {}
    pages: list[tuple[Birth, int, Run]] = []
    for run in runs:
        for mark in run.marks:
            pages.append((mark.birth, mark.end, run))
            if mark.end > deepest.get(mark.birth, (0, run))[0]:
                deepest[mark.birth] = (mark.end, run)
    for birth, (_, run) in deepest.items():
        _require(tree.anchors.get(birth) is run, "the anchor of a birth holds its deepest page", run)
    for birth, depth, run in pages:
        _require(find(tree.anchors, birth, depth) is run, "a page is found from its birth", run)
    _require(len(tree.anchors) == len(deepest), "only births that have pages have an anchor")


def _check_spans(tree: Tree, runs: list[Run]) -> None:
    shown = {run.span: 0 for run in runs}
    for run in runs:
        shown[run.span] += run.end - run.start
    for span, units in shown.items():
        _require(span.live == units, "a span counts the units that are shown")
    _require(tree.counts.spans == len(shown), "spans are counted")
    _require(tree.counts.span_bytes == sum(span.nbytes for span in shown), "the bytes of spans are counted")


def _check_queues(tree: Tree, runs: list[Run]) -> None:
    spaces = set(map(id, tree.queue.good()))
    leaves = {id(run) for space in tree.spaces.values() for run in space.leaves.good()}
    for run in runs:
        if run.is_evictable:
            rank, queued, queued_space = tree.rank_of_leaf(run), run.queued, run.space.queued
            _require(
                queued is not None and queued <= rank and id(run) in leaves,
                "a leaf is queued, at most at its rank",
                run,
            )
            _require(
                queued_space is not None and queued_space <= rank,
                "a space is queued, at most at its leaves' ranks",
                run,
            )
            _require(id(run.space) in spaces, "a space is queued among the spaces", run)


def _check_counts(tree: Tree, runs: list[Run]) -> None:
    counts = tree.counts
    total = sum(run.end - run.start for run in runs)
    _require(counts.total == total, "cached units are counted")
    _require(counts.protected == sum(run.locked_end - run.start for run in runs), "protected units are counted")
    _require(counts.total == counts.inserted_tokens - counts.evicted_tokens, "what was inserted is cached or evicted")
    _require(counts.runs == len(runs), "runs are counted")
    _require(counts.marks == sum(len(run.inner) for run in runs), "marks are counted")
    _require(counts.reads == sum(len(run.reads or ()) for run in runs), "reads are counted")
    _require(counts.digests == sum(len(run.digests) for run in runs), "digests are counted")
    _require(0 <= counts.hit_tokens <= counts.lookup_tokens, "what was hit was looked up")
