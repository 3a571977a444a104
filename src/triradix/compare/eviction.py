"""How the rows of evictions are measured."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from triradix.compare.adapter import Adapter
from triradix.compare.row import VOCABULARY, Row, Scale, Slots, Work, slots, tokens


class FullCache:
    """A cache in the steady state: what is inserted is evicted, from leaves that none has touched since they came.

    ``groups`` prefixes of ``prefix`` tokens have ``ends`` ends of ``end`` tokens each. A step inserts fresh runs of
    ``fresh`` tokens, as many as make ``step`` tokens, and evicts ``step``.
    """

    def __init__(
        self,
        adapter: type[Adapter],
        rng: np.random.Generator,
        leaves: int,
        *,
        prefix: int,
        ends: int,
        end: int,
        fresh: int,
        step: int,
        slots: Slots = slots,
    ) -> None:
        self.tree = adapter()
        self._fresh, self._step = fresh, step
        first = 0
        for begin in range(0, leaves, ends):
            head = tokens(rng, prefix)
            for number in range(min(ends, leaves - begin)):
                run = np.concatenate((head, tokens(rng, end)))
                run[prefix] = number  # another first token for each end
                self.tree.insert(self.tree.key(run), self.tree.values(slots(first, len(run))))
                first += len(run)
        self._base, self._slots = tokens(rng, fresh), slots(first, fresh)
        self._numbers: Iterator[int] = count(VOCABULARY)
        self._evict = self.tree.loop("evict", "tokens")

    def insert_fresh(self) -> None:
        for _ in range(self._step // self._fresh):
            # The first token alone makes it a new run: no other has one beyond the vocabulary.
            self._base[0] = next(self._numbers)
            self.tree.insert(self.tree.key(self._base), self.tree.values(self._slots))

    def first_evictions(self) -> list[list[int]]:
        """Of three: how many slots were freed, and their sum."""
        found = []
        for _ in range(3):
            self.insert_fresh()
            freed = list(self.tree.freed(self._step))
            found.append([len(freed), sum(freed)])
        self.tree.forget_freed()
        return found

    def microseconds(self, steps: int) -> float:
        """An eviction, with what it freed handed over. Its inserts come before and are not timed."""
        for _ in range(steps):
            self.insert_fresh()
        taken = self._evict([self._step] * steps)
        self.tree.forget_freed()
        return taken / 1000

    def steps_for(self, round_ns: int) -> int:
        return int(min(256, max(1, round_ns / (1000 * self.microseconds(1)))))


class Evict(Work):
    def __init__(self, row: Row, slots: Slots = slots) -> None:
        super().__init__(row)
        self.slots = slots

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.cache = FullCache(
            adapter, rng, scale.leaves, prefix=512, ends=99, end=128, fresh=512, step=512, slots=self.slots
        )
        self.evicted = self.cache.first_evictions()
        self.steps = self.cache.steps_for(scale.round_ns)

    def answer(self) -> Any:
        return self.evicted

    def round(self) -> dict[str, float]:
        return {self.rows[0].name: self.cache.microseconds(self.steps)}


class Growth(Work):
    """An eviction among many leaves, as a multiple of one among few."""

    alone = True
    most_rounds = 5

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.few, self.many = (
            FullCache(adapter, rng, leaves, prefix=16, ends=100, end=16, fresh=16, step=64) for leaves in scale.growth
        )
        self.evicted = [self.few.first_evictions(), self.many.first_evictions()]
        self.steps = [cache.steps_for(scale.round_ns) for cache in (self.few, self.many)]

    def answer(self) -> Any:
        return self.evicted

    def round(self) -> dict[str, float]:
        few, many = self.few.microseconds(self.steps[0]), self.many.microseconds(self.steps[1])
        return {self.rows[0].name: many / few}


class ShortEvict(Work):
    """Runs of a few tokens, inserted and then evicted one by one."""

    def __init__(self, row: Row, length: int) -> None:
        super().__init__(row)
        self.length = length

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        length = self.length
        self.cache = FullCache(adapter, rng, 1000, prefix=0, ends=1000, end=length, fresh=length, step=length)
        self.evicted = self.cache.first_evictions()
        self.steps = self.cache.steps_for(scale.round_ns)

    def answer(self) -> Any:
        return self.evicted

    def round(self) -> dict[str, float]:
        return {self.rows[0].name: self.cache.microseconds(self.steps)}
