"""The run: a compressed chain of pages, the tree's own node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from triradix.arguments import INT64_MIN
from triradix.reference.births import Birth
from triradix.reference.marks import Mark, Marks, Reads, segment
from triradix.reference.span import Span

if TYPE_CHECKING:
    from triradix.reference.heap import Rank
    from triradix.reference.spaces import Space


class Run(Mark):
    """The pages (start, end] of one path, without a branch in between. The root of a space is a run of no pages.

    It is itself the mark of its last page: most runs need no other, and so an insert makes two objects that the garbage
    collector walks, the run and its span. For the same reason tuples that are seldom filled stand where lists might.

    A split makes the upper part a new run, and a merge lets the lower run take in the upper: the lower part keeps its
    identity, and with it its children, its last mark and its place in the eviction queue.
    """

    __slots__ = (
        "children", "digests", "inner", "last", "locked_children", "locked_end", "parent", "queued", "reads", "space",
        "span", "start",
    )  # fmt: skip

    def __init__(self, space: Space, parent: Run | None, start: int, end: int, span: Span, birth: Birth) -> None:
        self.end = end
        self.birth = birth
        self.priority = INT64_MIN
        self.hits = 0
        self.locks = 0
        self.space = space
        self.parent = parent
        """None for a root, and for a run that is gone."""
        self.start = start
        self.span = span
        """Holds tokens and slots of at least (start, end]."""
        self.children: dict[bytes, Run] = {}
        """By the tokens of their first page: one look-up a step, however many children there are.

        (Python seeds the hash of bytes: nobody can aim at collisions.)"""
        self.inner: Marks = ()
        """The marks above the last one."""
        self.last = 0
        """The tick of the last call that ended at its last page."""
        self.reads: Reads | None = None
        """Of calls that ended above its last page; those that came before ``last`` say nothing any more."""
        self.digests: tuple[bytes, ...] = ()
        """Of its first pages, as far as somebody asked for them."""
        self.locked_end = start
        """The pages (start, locked_end] are locked. Locks of a run always hold a prefix of it."""
        self.locked_children = 0
        """How many children have a locked page."""
        self.queued: Rank | None = None
        """The rank that stands in the eviction queue for it, if any."""

    @property
    def is_root(self) -> bool:
        return self is self.space.root

    @property
    def is_evictable(self) -> bool:
        """Whether its last page can go."""
        return not self.children and self.locked_end < self.end

    @property
    def only_child(self) -> Run | None:
        """Its child, if it has one and no more."""
        return next(iter(self.children.values())) if len(self.children) == 1 else None

    @property
    def marks(self) -> Marks:
        """All of them; the last one is the run itself."""
        return (*self.inner, self)

    def first_page(self, page_size: int) -> bytes:
        """Its key among the children of its parent."""
        return self.span.between(self.start, self.start + page_size)

    def holder(self, depth: int) -> Run:
        """The run that holds the page of this path that ends at ``depth``: this one or one above. O(runs between)."""
        run = self
        while depth <= run.start and run.parent is not None:
            run = run.parent
        return run

    def path(self) -> list[Run]:
        """The runs from below the root down to this one."""
        runs: list[Run] = []
        run: Run | None = self
        while run is not None and not run.is_root:
            runs.append(run)
            run = run.parent
        runs.reverse()
        return runs

    def mark_of(self, depth: int) -> Mark:
        """The mark whose segment holds the page that ends at ``depth``. O(log marks)."""
        if not self.inner:
            return self
        at = segment(self.inner, depth)
        return self.inner[at] if at < len(self.inner) else self

    def birth_at(self, depth: int) -> Birth:
        """The birth of its page that ends at ``depth``."""
        return self.mark_of(depth).birth

    def last_at(self, depth: int) -> int:
        """The tick of the last call that ended in the run at ``depth`` or below. O(log reads)."""
        if self.reads is None:
            return self.last
        below = self.reads.below(depth)
        return max(self.last, self.reads.ticks[below - 1]) if below else self.last

    def segment_start(self) -> int:
        """Where its last segment begins: the pages that a policy cannot tell from the last one. O(log reads)."""
        start = self.inner[-1].end if self.inner else self.start
        if self.reads is not None and len(self.reads) > (until := self.reads.until(self.last)):
            start = max(start, self.reads.ends[until])
        return start

    def state(self) -> tuple[Any, ...]:
        """What `Undo` needs to put the run back. What its inner marks and reads say, the entries of ``children`` and
        ``queued`` are kept apart.
        """
        return (
            self.said(), self.inner, self.last, self.reads, self.parent, self.start, self.span, self.children,
            self.digests, self.locked_end, self.locked_children,
        )  # fmt: skip

    def restore(self, state: tuple[Any, ...]) -> None:
        (
            said, self.inner, self.last, self.reads, self.parent, self.start, self.span, self.children,
            self.digests, self.locked_end, self.locked_children,
        ) = state  # fmt: skip
        self.say(said)
