"""The KV slots of an engine: a bounded pool, handed out and taken back by the page."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from triradix.keys import Slots

_Scalar = TypeVar("_Scalar", bound=np.generic)


class SlotPool:
    """Pages of ``page_size`` slots each; page p holds the slots p·page_size … (p + 1)·page_size − 1.

    ``capacity`` is in tokens and rounded down to whole pages; None: without bound. Pages that came back are reused
    first, the last one first; fresh ones follow in order. Which slots a request gets depends only on the calls, so
    that two replays that agree hold the same slots. Lending and returning cost O(pages), in NumPy.
    """

    def __init__(self, capacity: int | None, page_size: int) -> None:
        self.page_size = page_size
        self._pages = None if capacity is None else capacity // page_size
        self._fresh = 0  # pages from here on have never been lent
        self._returned: Slots = np.empty(1024, np.int64)  # a stack
        self._depth = 0
        self._lent: npt.NDArray[np.bool_] = np.zeros(1024, np.bool_)

    @property
    def capacity(self) -> int | None:
        """Slots in all, None without bound."""
        return None if self._pages is None else self._pages * self.page_size

    @property
    def used(self) -> int:
        """Slots lent out."""
        return (self._fresh - self._depth) * self.page_size

    def missing(self, slots: int) -> int:
        """How many of ``slots`` (whole pages) the pool cannot lend now."""
        return 0 if self._pages is None else max(0, slots - (self._pages * self.page_size - self.used))

    def take(self, slots: int) -> Slots:
        """Lend that many slots (whole pages), which the pool must have."""
        if slots % self.page_size or self.missing(slots):
            raise ValueError(f"the pool cannot lend {slots} slots")
        count = slots // self.page_size
        reused = min(count, self._depth)
        pages = np.empty(count, np.int64)
        pages[:reused] = self._returned[self._depth - reused : self._depth][::-1]
        self._depth -= reused
        pages[reused:] = np.arange(self._fresh, self._fresh + count - reused)
        self._fresh += count - reused
        if self._fresh > len(self._lent):
            self._lent = _grown(self._lent, self._fresh)
        self._lent[pages] = True
        return (pages[:, None] * self.page_size + np.arange(self.page_size)).ravel()

    def give_back(self, slots: Slots) -> None:
        """Take back whole pages, in any order; RuntimeError if one is torn, or not lent.

        A page that stands in ``slots`` twice goes unnoticed here, but never past `check_only_holder`.
        """
        pages = self._pages_of(slots)
        if not len(pages):
            return
        if not self._lent[pages].all():
            raise RuntimeError(f"page {pages[~self._lent[pages]][0]} came back to the pool twice")
        self._lent[pages] = False
        end = self._depth + len(pages)
        if end > len(self._returned):
            self._returned = _grown(self._returned, end)
        self._returned[self._depth : end] = pages
        self._depth = end

    def check_only_holder(self, cached: Slots) -> None:
        """RuntimeError unless ``cached`` is exactly what is lent out, every slot once: nothing leaked."""
        order = np.sort(cached)
        pages = self._pages_of(order)
        lent = np.flatnonzero(self._lent[: self._fresh])
        if len(order) != self.used or not np.array_equal(pages, lent):
            raise RuntimeError(
                f"slots leaked: {self.used} are lent out, the cache holds {len(order)}, "
                f"{len(np.setxor1d(pages, lent))} pages differ"
            )

    def _pages_of(self, slots: Slots) -> npt.NDArray[np.int64]:
        size = self.page_size
        pages = slots[::size] // size
        whole = (pages[:, None] * size + np.arange(size)).ravel()
        if not np.array_equal(whole, slots) or (len(pages) and (pages.min() < 0 or pages.max() >= self._fresh)):
            raise RuntimeError("slots came back to the pool that are no whole pages of it")
        return pages


def _grown(array: npt.NDArray[_Scalar], needed: int) -> npt.NDArray[_Scalar]:
    larger = np.zeros(max(needed, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger
