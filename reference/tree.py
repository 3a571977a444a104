"""The tree: what hangs together, and what is counted. `walk`, `insert`, `split`, `merge`, `locks`, `eviction` use it.

Whatever changes a run keeps its old state in ``undo`` first.
"""

from __future__ import annotations

from collections.abc import Iterator

from triradix.arguments import Namespace
from triradix.config import Config
from triradix.events import KVCacheEvent
from triradix.reference.births import Birth
from triradix.reference.counts import Counts
from triradix.reference.heap import Queue, Rank, rank_of_leaf, ranks_by_hits
from triradix.reference.log import COPY, GONE, note
from triradix.reference.marks import drop_old_reads
from triradix.reference.node import Run
from triradix.reference.spaces import Space
from triradix.reference.span import Span
from triradix.reference.undo import Undo


class Tree:
    """All spaces of a cache, from one ``reset`` to the next."""

    __slots__ = (
        "anchors", "counts", "epoch", "events", "hits_matter", "keeps_events", "overlap", "page_size",
        "priorities_matter", "queue", "rank_of_leaf", "ranks_fall", "spaces", "undo",
    )  # fmt: skip

    def __init__(self, config: Config, undo: Undo, events: list[KVCacheEvent]) -> None:
        self.page_size = config.page_size
        self.overlap = int(config.bigram)
        self.keeps_events = config.enable_kv_cache_events
        self.rank_of_leaf = rank_of_leaf(config.eviction_policy, config.slru_threshold)
        self.hits_matter = ranks_by_hits(config.eviction_policy)
        self.priorities_matter = config.eviction_policy == "priority"
        self.ranks_fall = config.eviction_policy == "mru"
        """Whether a page that is used goes earlier. (With all others it stays where it is, or goes later.)"""
        self.events = events
        self.spaces: dict[Namespace, Space] = {}
        """Those that have pages."""
        self.anchors: dict[Birth, Run] = {}
        """For each birth the run with its deepest page that is left."""
        self.queue: Queue[Space] = Queue(undo, self._rank_of_space)
        """The spaces by the smallest rank among their leaves."""
        self.counts = Counts()
        self.undo = undo
        self.epoch = object()
        """What handles to roots are valid by."""

    # Finding

    def root_of(self, namespace: Namespace) -> Run:
        """The root of a space; of a new one, not kept until it has pages, if there is none."""
        space = self.spaces.get(namespace)
        return (space or Space(namespace, self.overlap, Queue(self.undo, self._rank_of_run))).root

    def runs(self) -> Iterator[Run]:
        """Every run, roots apart, in no particular order."""
        waiting = [child for space in self.spaces.values() for child in space.root.children.values()]
        while waiting:
            run = waiting.pop()
            yield run
            waiting += run.children.values()

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
            "memory_bytes": counts.memory_bytes(len(self.spaces), len(self.anchors)),
        }

    # Changing

    def empty(self, run: Run) -> None:
        """Nothing of the tree hangs on ``run`` any more."""
        note(self.undo, GONE, run.start)
        run.space.leaves.withdraw(run)
        self.counts.reads -= len(run.reads or ())
        run.parent, run.children, run.inner, run.reads, run.digests = None, {}, (), None, ()
        run.end = run.locked_end = run.start
        self.counts.runs -= 1

    # Losing pages

    def show_less(self, run: Run, end: int) -> None:
        """Let ``run`` end at ``end``. A span of which less than half is shown is given up for copies of what is."""
        gone = run.end - end
        span = run.span
        run.end = end
        self.let_go(span, gone)
        if not span.live or 2 * span.live >= len(span.slots):
            return
        note(self.undo, COPY, span.live, len(span.slots))
        # Everything else that the span shows lies above: this run is a leaf.
        holder: Run | None = run
        while span.live and holder is not None:
            if holder.span is span and holder.end > holder.start:
                self.undo.keep(holder)
                drop_old_reads(self, holder)
                holder.span = span.copy_of(holder.start, holder.end)
                self.hold(holder.span)
                self.let_go(span, holder.end - holder.start)
            holder = holder.parent

    def detach(self, run: Run, parent: Run) -> None:
        """Take a run without pages out of the tree."""
        page = run.first_page(self.page_size)
        self.undo.keep_entry(parent.children, page)
        del parent.children[page]
        self.empty(run)

    def end_birth(self, birth: Birth) -> None:
        self.undo.keep_entry(self.anchors, birth)
        del self.anchors[birth]

    def remove_space(self, space: Space) -> None:
        """Drop a space without pages."""
        self.undo.keep_entry(self.spaces, space.namespace)
        del self.spaces[space.namespace]
        self.queue.withdraw(space)

    def hold(self, span: Span) -> None:
        self.counts.spans += 1
        self.counts.span_bytes += span.nbytes

    def let_go(self, span: Span, units: int) -> None:
        self.undo.keep(span)
        span.live -= units
        if not span.live:
            self.counts.spans -= 1
            self.counts.span_bytes -= span.nbytes

    # Ranking

    def offer(self, run: Run) -> None:
        """See that ``run`` stands in the queues if its last page can go, and not with a rank that it no longer has."""
        rank = self._rank_of_run(run)
        if rank is None:
            run.space.leaves.withdraw(run)
        elif run.space.leaves.offer(run, rank):
            self.queue.offer(run.space, rank)

    def _rank_of_run(self, run: Run) -> Rank | None:
        return self.rank_of_leaf(run) if run.is_evictable else None

    def _rank_of_space(self, space: Space) -> Rank | None:
        leaf = space.leaves.smallest()
        return leaf.queued if leaf is not None else None

    def take_apart(self) -> None:
        """Cut every tie of a tree that is given up: handles to its pages do not keep it, and its runs go one by one,
        not each inside the one above. O(runs).
        """
        for run in list(self.runs()):
            run.parent, run.children = None, {}
        self.anchors.clear()
        self.spaces.clear()
