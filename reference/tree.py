"""The tree: runs of pages, found by walking down, grown by inserts, split and merged.

Every function here that changes a run keeps its old state in ``undo`` first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from triradix.reference import marks as marks_
from triradix.reference.births import Birth
from triradix.reference.counts import Counts
from triradix.reference.events import stored
from triradix.reference.eviction import Queue, Rank, rank_of_mark, ranks_by_hits
from triradix.reference.marks import Mark
from triradix.reference.node import Run
from triradix.reference.spaces import Space
from triradix.reference.span import Span, Units
from triradix.reference.undo import Undo

from triradix.arguments import INT64_MIN, Namespace
from triradix.config import Config
from triradix.events import KVCacheEvent
from triradix.keys import Slots

MOST_MARKS = 64
"""A run with more is split in two, so that no step costs more than this many marks."""

MOST_MERGED_MARKS = 32
"""A merge never makes a run with more: it would soon be split again."""


class Tree:
    """All spaces of a cache, from one ``reset`` to the next."""

    __slots__ = (
        "counts", "epoch", "events", "hits_matter", "keeps_events", "overlap", "page_size", "queue", "rank_of_mark",
        "spaces", "undo",
    )  # fmt: skip

    def __init__(self, config: Config, undo: Undo, events: list[KVCacheEvent]) -> None:
        self.page_size = config.page_size
        self.overlap = int(config.bigram)
        self.keeps_events = config.enable_kv_cache_events
        self.rank_of_mark = rank_of_mark(config.eviction_policy, config.slru_threshold)
        self.hits_matter = ranks_by_hits(config.eviction_policy)
        self.events = events
        self.spaces: dict[Namespace, Space] = {}
        """Those that have pages."""
        self.queue: Queue[Space] = Queue(self._rank_of_space)
        """The spaces by the smallest rank among their leaves."""
        self.counts = Counts()
        self.undo = undo
        self.epoch = object()
        """What handles to roots are valid by."""

    # Finding

    def walk(self, run: Run, depth: int, key: Units, goal: int) -> tuple[Run, int]:
        """Follow ``key`` from the page of ``run`` that ends at ``depth`` as far as it is cached, to ``goal`` at most.

        Returns the run and the depth where the walk ended. O(goal - depth, and the runs walked through).
        """
        while True:
            if depth < run.end and depth < goal:
                depth = run.span.equal_until(key, depth, min(run.end, goal))
                depth -= depth % self.page_size
            if depth < run.end or depth == goal:
                return run, depth
            child = run.children.get(key.between(depth, depth + self.page_size))
            if child is None:
                return run, depth
            run = child

    def root_of(self, namespace: Namespace) -> Run:
        """The root of a space; of a new one, not kept until it has pages, if there is none."""
        space = self.spaces.get(namespace)
        return (space or Space(namespace, self.overlap, Queue(self._rank_of_run))).root

    def runs(self) -> Iterator[Run]:
        """Every run, roots apart, in no particular order."""
        waiting = [child for space in self.spaces.values() for child in space.root.children.values()]
        while waiting:
            run = waiting.pop()
            yield run
            waiting += run.children.values()

    def path_slots(self, run: Run, start: int, end: int) -> Slots:
        """The slots (start, end] of the path that ends in ``run``. O(result, and the runs above)."""
        slots = np.empty(max(end - start, 0), np.int64)
        while end > start:
            run = run.holder(end)
            top = max(run.start, start)
            slots[top - start : end - start] = run.span.slots_between(top, end)
            end = top
        return slots

    def stats(self) -> dict[str, int]:
        counts = self.counts
        return {
            "lookups": counts.lookups,
            "lookup_tokens": counts.lookup_tokens,
            "hit_tokens": counts.hit_tokens,
            "inserts": counts.inserts,
            "inserted_tokens": counts.inserted_tokens,
            "evicted_tokens": counts.evicted_tokens,
            "total_tokens": counts.total,
            "nodes": counts.runs,
            "memory_bytes": counts.memory_bytes(len(self.spaces)),
        }

    # Changing

    def begin(self) -> None:
        """All checks are done: from here on the operation changes the tree."""
        self.undo.last_of_all(self.requeue)
        self.undo.keep(self.counts)

    def match(self, run: Run, depth: int, key: Units, goal: int) -> tuple[int, Birth | None]:
        """The depth that ``key`` reaches, and the birth of the page there (None: the root)."""
        start = key.base
        run, depth = self.walk(run, depth, key, goal)
        counts = self.counts
        counts.clock += 1
        counts.lookups += 1
        counts.lookup_tokens += goal - start
        counts.hit_tokens += depth - start
        return depth, None if run.is_root else self.write(run, depth, counts.clock)

    def insert(
        self, run: Run, depth: int, key: Units, goal: int, slots: Slots, priority: int, inserted: int
    ) -> tuple[int, Birth | None]:
        """Cache ``key`` down to ``goal``; ``slots`` are those of its units.

        Returns the depth down to which it was cached already, and the birth of its last page (None: the root).
        """
        start = key.base
        run, depth = self.walk(run, depth, key, goal)
        counts = self.counts
        counts.clock += 1
        counts.inserts += 1
        counts.inserted_tokens += goal - depth
        hits = int(self.hits_matter)
        # What an earlier chunk of the request inserted is no hit: the +1 at the end of the path is taken back there.
        chunk = min(depth, inserted - inserted % self.page_size)
        if hits and chunk > 0:
            self.write(run.holder(chunk), chunk, 0, hits=-1)
        run = run.holder(depth)
        if depth == goal:
            return depth, None if run.is_root else self.write(run, depth, counts.clock, priority, hits)
        if depth < run.end:
            run = self.split(run, depth)
        span = Span(depth, key.between(depth, goal), self.overlap, slots[depth - start : goal - start].copy())
        leaf = self._grow(run, goal, span)
        birth = leaf.marks[-1].birth
        self.write(leaf, goal, counts.clock, priority, hits)
        if self.keeps_events:
            self.undo.keep_length(self.events)
            self.events.append(stored(self, leaf, depth, goal))
        return depth, birth

    def _grow(self, parent: Run, end: int, span: Span) -> Run:
        """Hang the pages of ``span`` below ``parent``, and join them with it if they are its only child."""
        leaf = Run(parent.space, parent, parent.end, end, span, [])
        leaf.marks.append(Mark(end, Birth(self.counts.clock, leaf)))
        if parent.is_root and not parent.children:
            self.undo.keep_entry(self.spaces, parent.space.namespace)
            self.spaces[parent.space.namespace] = parent.space
        page = leaf.first_page(self.page_size)
        self.undo.keep_entry(parent.children, page)
        parent.children[page] = leaf
        counts = self.counts
        counts.runs += 1
        counts.marks += 1
        counts.births += 1
        counts.total += end - leaf.start
        self._hold(span)
        self.merge_upwards(leaf)
        return leaf

    def write(self, run: Run, depth: int, last: int, priority: int = INT64_MIN, hits: int = 0) -> Birth:
        """Write at the mark of the page of ``run`` that ends at ``depth``; returns the birth of that page.

        Afterwards the page may stand in a new run above ``run``.
        """
        self.undo.keep(run)
        marks = run.marks
        before = len(marks)
        at = marks_.ensure(marks, depth)
        mark = marks[at]
        self.undo.keep(mark)
        mark.last = max(mark.last, last)
        mark.priority = max(mark.priority, priority)
        mark.hits += hits
        marks_.prune(marks, at)
        self.counts.marks += len(marks) - before
        if len(marks) < before:
            self.merge_upwards(run)
        self._limit_marks(run)
        if depth == run.end:
            self.offer(run)
        return mark.birth

    def mark_at(self, run: Run, depth: int) -> Mark:
        """The mark of the page of ``run`` that ends at ``depth``, to be changed.

        The page may stand in a new run above ``run`` afterwards.
        """
        self.undo.keep(run)
        before = len(run.marks)
        mark = run.marks[marks_.ensure(run.marks, depth)]
        self.undo.keep(mark)
        self.counts.marks += len(run.marks) - before
        self._limit_marks(run)
        return mark

    def prune_above(self, run: Run, at: int) -> None:
        """Drop the marks of ``run`` that add nothing to ``run.marks[at]`` any more."""
        before = len(run.marks)
        marks_.prune(run.marks, at)
        self.counts.marks += len(run.marks) - before

    def _limit_marks(self, run: Run) -> None:
        if len(run.marks) > MOST_MARKS:
            self.split(run, run.marks[MOST_MARKS // 2].end)

    # Splitting and merging

    def split(self, run: Run, depth: int) -> Run:
        """Make the pages of ``run`` down to ``depth`` a run of their own, above it; returns that. Copies no page."""
        parent = run.parent
        assert parent is not None, "a root has no pages to split"
        self.undo.keep(run)
        page, below = run.first_page(self.page_size), run.span.between(depth, depth + self.page_size)
        self.undo.keep_entry(parent.children, page)
        before = len(run.marks)
        cut = marks_.ensure(run.marks, depth) + 1
        upper = Run(run.space, parent, run.start, depth, run.span, run.marks[:cut])
        pages = (depth - run.start) // self.page_size
        upper.digests, run.digests = run.digests[:pages], run.digests[pages:]
        upper.locked_end = min(run.locked_end, depth)
        upper.locked_children = int(run.locked_end > depth)
        upper.children[below] = run
        self.counts.runs += 1
        self.counts.marks += len(run.marks) - before
        run.marks = run.marks[cut:]
        run.start = depth
        run.locked_end = max(run.locked_end, depth)
        run.parent = upper
        parent.children[page] = upper
        self._move_anchors(upper.marks, run, upper, run.marks[0].birth)
        return upper

    def merge_upwards(self, run: Run) -> None:
        """While ``run`` is an only child, let it take in its parent, if that costs nothing or is worth its cost.

        Windows that lie in one span join for free. Else both are copied, but only if the upper is not longer than twice
        the lower: so a sequence that grows by turns is copied O(log n) times a token.
        """
        while True:
            upper = run.parent
            if upper is None or upper.is_root or len(upper.children) > 1:
                return
            if upper.span is not run.span and upper.end - upper.start > 2 * (run.end - run.start):
                return
            marks = marks_.pruned(upper.marks + run.marks)
            if len(marks) > MOST_MERGED_MARKS:
                return
            self._merge(upper, run, marks)

    def _merge(self, upper: Run, run: Run, marks: list[Mark]) -> None:
        parent = upper.parent
        assert parent is not None, "a root is not merged"
        self.undo.keep(upper)
        self.undo.keep(run)
        page = upper.first_page(self.page_size)
        self.undo.keep_entry(parent.children, page)
        if upper.span is not run.span:
            span = upper.span.joined_with(run.span, upper.start, run.start, run.end)
            self._hold(span)
            self._let_go(upper.span, upper.end - upper.start)
            self._let_go(run.span, run.end - run.start)
            run.span = span
        if len(upper.digests) * self.page_size == upper.end - upper.start:
            run.digests = upper.digests + run.digests
        else:
            self.counts.digests -= len(run.digests)
            run.digests = upper.digests
        self._move_anchors(upper.marks, upper, run, None)
        self.counts.marks += len(marks) - len(upper.marks) - len(run.marks)
        run.marks = marks
        if run.locked_end == run.start:
            run.locked_end = upper.locked_end
        run.start = upper.start
        run.parent = parent
        parent.children[page] = run
        self._empty(upper)

    def _empty(self, run: Run) -> None:
        """Nothing of the tree hangs on ``run`` any more, should an entry of a queue still hold it."""
        run.parent, run.children, run.marks, run.digests = None, {}, [], []
        run.end = run.locked_end = run.start
        run.queued = None
        self.counts.runs -= 1

    def _move_anchors(self, marks: list[Mark], old: Run, new: Run, going_on: Birth | None) -> None:
        """The pages of ``marks`` went from one run to another; the birth ``going_on`` has pages below them."""
        for mark in marks:
            birth = mark.birth
            if birth.anchor is old and birth is not going_on:
                self.undo.keep(birth)
                birth.anchor = new

    # Losing pages

    def show_less(self, run: Run, end: int) -> None:
        """Let ``run`` end at ``end``. A span of which less than half is shown is given up for copies of what is."""
        gone = run.end - end
        span = run.span
        run.end = end
        self._let_go(span, gone)
        if not span.live or 2 * span.live >= len(span.slots):
            return
        # Everything else that the span shows lies above: this run is a leaf.
        holder: Run | None = run
        while span.live and holder is not None:
            if holder.span is span and holder.end > holder.start:
                self.undo.keep(holder)
                holder.span = span.copy_of(holder.start, holder.end)
                self._hold(holder.span)
                self._let_go(span, holder.end - holder.start)
            holder = holder.parent

    def detach(self, run: Run, parent: Run) -> None:
        """Take a run without pages out of the tree."""
        page = run.first_page(self.page_size)
        self.undo.keep_entry(parent.children, page)
        del parent.children[page]
        self._empty(run)

    def end_birth(self, birth: Birth) -> None:
        self.undo.keep(birth)
        birth.anchor = None
        self.counts.births -= 1

    def remove_space(self, space: Space) -> None:
        """Drop a space without pages; what is left of it in the queue of spaces is swept out in time."""
        self.undo.keep_entry(self.spaces, space.namespace)
        del self.spaces[space.namespace]
        space.queued = None
        space.leaves.clear()

    def _hold(self, span: Span) -> None:
        self.counts.spans += 1
        self.counts.span_bytes += span.nbytes

    def _let_go(self, span: Span, units: int) -> None:
        self.undo.keep(span)
        span.live -= units
        if not span.live:
            self.counts.spans -= 1
            self.counts.span_bytes -= span.nbytes

    # Ranking

    def offer(self, run: Run) -> None:
        """See that ``run`` stands in the queues if its last page can go."""
        rank = self._rank_of_run(run)
        if rank is not None and run.space.leaves.offer(run, rank):
            self.queue.offer(run.space, rank)

    def _rank_of_run(self, run: Run) -> Rank | None:
        return self.rank_of_mark(run.marks[-1]) if run.is_evictable else None

    def _rank_of_space(self, space: Space) -> Rank | None:
        leaf = space.leaves.smallest()
        return leaf.queued if leaf is not None else None

    def requeue(self) -> None:
        """Build the queues anew, as the end of a roll back: what is halfway in a heap cannot be put back. O(runs)."""
        self.queue.clear()
        for space in self.spaces.values():
            space.queued = None
            space.leaves.clear()
        for run in self.runs():
            run.queued = None
            self.offer(run)

    def take_apart(self) -> None:
        """Cut every tie of a tree that is given up, so that handles to its pages do not keep it. O(runs)."""
        for run in self.runs():
            for mark in run.marks:
                mark.birth.anchor = None
            run.parent, run.marks = None, []
        self.spaces.clear()
        self.queue.clear()
