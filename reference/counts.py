"""The numbers that a tree keeps: its clock, its sizes, what happened since it was made, and what it holds."""

from __future__ import annotations

import sys
from array import array
from operator import attrgetter

import numpy as np

from triradix.reference.marks import Mark
from triradix.reference.node import Run
from triradix.reference.span import Span

_FIELDS = (
    "clock", "digests", "evicted_tokens", "hit_tokens", "inserted_tokens", "inserts", "lookup_tokens", "marks",
    "protected", "reads", "runs", "span_bytes", "spans", "total",
)  # fmt: skip
_VALUES = attrgetter(*_FIELDS)


class Counts:
    __slots__ = _FIELDS

    clock: int
    """The tick of the last match or insert."""
    digests: int
    evicted_tokens: int
    hit_tokens: int
    inserted_tokens: int
    inserts: int
    lookup_tokens: int
    marks: int
    """Those inside runs: the last of a run is the run itself."""
    protected: int
    """Units of locked pages."""
    reads: int
    """Those that runs keep."""
    runs: int
    """Roots apart."""
    span_bytes: int
    spans: int
    total: int
    """Cached units."""

    def __init__(self) -> None:
        for field in _FIELDS:
            setattr(self, field, 0)

    def state(self) -> tuple[int, ...]:
        fields: tuple[int, ...] = _VALUES(self)
        return fields

    def restore(self, state: tuple[int, ...]) -> None:
        for field, value in zip(_FIELDS, state, strict=True):
            setattr(self, field, value)

    def restore_lookups(self, clock: int, lookup_tokens: int, hit_tokens: int) -> None:
        """All that a match counts, for which it would be a waste to keep the rest."""
        self.clock, self.lookup_tokens, self.hit_tokens = clock, lookup_tokens, hit_tokens

    @property
    def lookups(self) -> int:
        """Matches: nothing else ticks but these and inserts."""
        return self.clock - self.inserts

    def memory_bytes(self, spaces: int, births: int) -> int:
        """What the tree holds, estimated in O(1): the objects by their size in this Python, and the buffers.

        A run counts with its entry in a dict and in the eviction queue. Free room in dicts, lists and the allocator is
        not seen.
        """
        return (
            self.runs * _RUN
            + self.marks * _MARK
            + self.reads * _READ
            + births * _BIRTH
            + self.spans * _SPAN
            + self.span_bytes
            + spaces * _SPACE
            + self.digests * _DIGEST
        )


_GC_HEADER = 16
_INT = sys.getsizeof(1 << 30)
_POINTER = 8
# In a dict a page is a bytes object, and its entry takes a hash, two pointers and a place in the index.
_ENTRY = sys.getsizeof(b"") + 4 * _POINTER
_QUEUED = sys.getsizeof((0, 0)) + _GC_HEADER + 2 * _INT + 5 * _POINTER
_RUN = Run.__basicsize__ + _GC_HEADER + sys.getsizeof({}) + 4 * _INT + _ENTRY + _QUEUED
_MARK = Mark.__basicsize__ + _GC_HEADER + _POINTER + 2 * _INT
_READ = 2 * array("q").itemsize
_BIRTH = _INT + 4 * _POINTER
_SPAN = Span.__basicsize__ + _GC_HEADER + sys.getsizeof(b"") + sys.getsizeof(np.empty(0, np.int64))
_SPACE = 4 * _RUN
_DIGEST = sys.getsizeof(bytes(32)) + _POINTER
