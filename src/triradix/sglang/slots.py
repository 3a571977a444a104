"""Ids of the host's own making for what is cached, and the device slot of each.

SGLang's slots are made on the device. To read them back at every checkpoint would wait for all that the device still
has to do. So the tree holds ids that the host gives out, and this table, on the device, says which slot an id is for.
Ids go to the device (a copy that nobody waits for); nothing ever comes back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Ids = npt.NDArray[np.int64]


class SlotTable:
    """``capacity`` ids at first (more are made when they run out), all free.

    The free ids are a stack. What was free from the beginning lies in rising order, and what comes back is put so too,
    page by page: then most of what is taken is one run of consecutive ids, which needs no index on the device at all.
    """

    def __init__(self, capacity: int, page_size: int, device: torch.device) -> None:
        self._page_size = page_size
        self._slots = torch.empty(capacity, dtype=torch.int64, device=device)
        self.reset()

    def reset(self) -> None:
        """All ids are free again."""
        # One more than there are: a bigram key has a value for its last token too, which is never kept.
        self._free: Ids = np.arange(len(self._slots) + 1, dtype=np.int64)
        self._count = len(self._slots)

    @property
    def used(self) -> int:
        """How many ids are taken."""
        return len(self._slots) - self._count

    def offer(self, count: int, beyond: int = 0) -> Ids:
        """The next ``count`` free ids, and ``beyond`` numbers that mean nothing. A view: valid until the next call."""
        if count > self._count:
            self._grow(count)
        return self._free[self._count - count : self._count + beyond]

    def take(self, slots: torch.Tensor) -> None:
        """The last of the offered ids, as many as there are slots, stand for these now."""
        count = len(slots)
        if count:
            self._slots[self._index(self._free[self._count - count : self._count])] = slots.to(torch.int64)
            self._count -= count

    def find(self, ids: Ids) -> torch.Tensor:
        """The slots of these ids, int64, on the device. May be a view: valid until one of them is given back."""
        return self._slots[self._index(ids)]

    def give_back(self, ids: Ids) -> torch.Tensor:
        """Free these ids, whole pages in the order of their eviction. Returns the slots that they stood for."""
        slots = self.find(ids)
        count = len(ids)
        back = ids.reshape(-1, self._page_size)[::-1].reshape(-1)
        self._free[self._count : self._count + count] = back
        self._count += count
        return slots

    def _index(self, ids: Ids) -> Any:
        count = len(ids)
        if count == 0:
            return slice(0, 0)
        first = int(ids[0])
        if int(ids[-1]) - first == count - 1 and bool((np.diff(ids) == 1).all()):
            return slice(first, first + count)
        return torch.from_numpy(ids).to(self._slots.device, non_blocking=True)

    def _grow(self, count: int) -> None:
        old = len(self._slots)
        new = max(2 * old, old + count)
        slots = torch.empty(new, dtype=torch.int64, device=self._slots.device)
        slots[:old] = self._slots
        free = np.empty(new + 1, dtype=np.int64)
        free[: new - old] = np.arange(old, new)
        free[new - old : new - old + self._count] = self._free[: self._count]
        self._slots, self._free = slots, free
        self._count += new - old
