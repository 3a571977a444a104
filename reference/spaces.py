"""Spaces: one for each namespace that has pages."""

from __future__ import annotations

from triradix.arguments import Namespace
from triradix.reference.heap import Queue, Rank
from triradix.reference.node import Run
from triradix.reference.span import empty_span


class Space:
    """One namespace: its root, and its evictable leaves by rank."""

    __slots__ = ("leaves", "namespace", "queued", "root")

    def __init__(self, namespace: Namespace, overlap: int, leaves: Queue[Run]) -> None:
        self.namespace = namespace
        self.root = Run(self, None, 0, 0, empty_span(overlap), 0)
        self.leaves = leaves
        self.queued: Rank | None = None
        """The rank that stands in the queue of spaces for it, if any."""
