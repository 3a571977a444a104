"""Tokens and slots in their plain form, and comparing them at the speed of C.

A place is named by its *depth*: units from the root. Because a page never changes its depth, a run that is split,
merged or cut shows another window of depths and copies nothing.
"""

from __future__ import annotations

import numpy as np

from triradix.keys import Slots

WORD = 4
"""Bytes a token: uint32, little-endian. So two pages are equal if and only if their bytes are."""


class Units:
    """The units below depth ``base``, as tokens. A bigram unit is two neighbouring tokens, so they overlap by one."""

    __slots__ = ("base", "overlap", "words")

    def __init__(self, base: int, words: bytes, overlap: int) -> None:
        self.base = base
        self.words = words
        self.overlap = overlap
        """Tokens that the last unit has beyond its own: 1 for bigrams, else 0."""

    def between(self, start: int, end: int) -> bytes:
        """The tokens of the units (start, end]."""
        return self.words[(start - self.base) * WORD : (end - self.base + self.overlap) * WORD]

    def last_token(self, depth: int) -> bytes:
        """The last token of the unit that ends at ``depth``."""
        at = (depth - self.base - 1 + self.overlap) * WORD
        return self.words[at : at + WORD]

    def equal_until(self, other: Units, start: int, end: int) -> int:
        """The depth, from ``start`` to ``end``, down to which both hold the same units. O(end - start)."""
        ours, theirs = self.words, other.words
        here, there = (start - self.base) * WORD, (start - other.base) * WORD
        size = (end - start + self.overlap) * WORD
        if theirs.startswith(ours[here : here + size], there):
            return end
        # Equal before `low`; the first difference lies in [low, high). Each comparison halves what is left.
        low, high = 0, size
        while high - low > WORD:
            middle = low + (high - low) // (2 * WORD) * WORD
            if ours[here + low : here + middle] == theirs[there + low : there + middle]:
                low = middle
            else:
                high = middle
        return start + max(low // WORD - self.overlap, 0)


class Span(Units):
    """What runs show windows of: units with their slots. All runs that share a span lie on one path."""

    __slots__ = ("live", "slots")

    def __init__(self, base: int, words: bytes, overlap: int, slots: Slots) -> None:
        self.base, self.words, self.overlap = base, words, overlap
        self.slots = slots
        self.live = len(slots)
        """Units that some run still shows."""

    def slots_between(self, start: int, end: int) -> Slots:
        """The slots of the units (start, end]: a view."""
        return self.slots[start - self.base : end - self.base]

    def copy_of(self, start: int, end: int) -> Span:
        """A span of its own for the window (start, end]."""
        return Span(start, self.between(start, end), self.overlap, self.slots_between(start, end).copy())

    def joined_with(self, below: Span, start: int, middle: int, end: int) -> Span:
        """One span for the window (start, middle] of this one and (middle, end] of ``below``."""
        upper = self.words[(start - self.base) * WORD : (middle - self.base) * WORD]
        slots = np.concatenate((self.slots_between(start, middle), below.slots_between(middle, end)))
        return Span(start, upper + below.between(middle, end), self.overlap, slots)

    @property
    def nbytes(self) -> int:
        return len(self.words) + self.slots.nbytes

    def state(self) -> int:
        return self.live

    def restore(self, state: int) -> None:
        self.live = state


def empty_span(overlap: int) -> Span:
    """What the root of a namespace shows."""
    return Span(0, b"", overlap, np.empty(0, np.int64))
