"""The run: a compressed chain of pages, the tree's own node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from triradix.reference.births import Birth
from triradix.reference.marks import Mark, segment
from triradix.reference.span import Span

if TYPE_CHECKING:
    from triradix.reference.heap import Rank
    from triradix.reference.spaces import Space


class Run:
    """The pages (start, end] of one path, without a branch in between. The root of a space is a run of no pages.

    A split makes the upper part a new run, and a merge lets the lower run take in the upper: the lower part keeps its
    identity, and with it its children, its tail and its place in the eviction queue.
    """

    __slots__ = (
        "children", "digests", "end", "locked_children", "locked_end", "marks", "parent", "queued", "space", "span",
        "start",
    )  # fmt: skip

    def __init__(self, space: Space, parent: Run | None, start: int, end: int, span: Span, marks: list[Mark]) -> None:
        self.space = space
        self.parent = parent
        """None for a root, and for a run that is gone."""
        self.start = start
        self.end = end
        self.span = span
        """Holds tokens and slots of at least (start, end]."""
        self.children: dict[bytes, Run] = {}
        """By the tokens of their first page. (Python seeds the hash of bytes: nobody can aim at collisions.)"""
        self.marks = marks
        """Sorted by end; the last one ends where the run does. A root has none."""
        self.digests: list[bytes] = []
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

    def birth_at(self, depth: int) -> Birth:
        """The birth of its page that ends at ``depth``."""
        return self.marks[segment(self.marks, depth)].birth

    def state(self) -> tuple[Any, ...]:
        """What `Undo` needs to put the run back. What its marks say and the entries of ``children`` are kept apart."""
        locks = (self.locked_end, self.locked_children)
        return (self.parent, self.start, self.end, self.span, self.children, self.digests, self.marks[:], *locks)

    def restore(self, state: tuple[Any, ...]) -> None:
        (self.parent, self.start, self.end, self.span, self.children, self.digests, marks, *locks) = state
        self.locked_end, self.locked_children = locks
        self.marks = marks[:]
