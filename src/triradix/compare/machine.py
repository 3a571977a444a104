"""The machine as if it were a system: its rounds are those of `floor`, on the same core, in turns with the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from typing import Any, ClassVar

import numpy as np

from triradix.compare.adapter import Adapter, CannotDo, Loop, shares, times_for, undisturbed
from triradix.compare.row import VOCABULARY, Floor, Row, Scale, Work

Step = Callable[[int], Any]


class Machine(Adapter):
    calls: ClassVar[dict[str, str | tuple[str, str]]] = {}

    @classmethod
    def prepare(cls) -> None:
        from triradix.compare import floor  # noqa: F401  (compiled: ImportError here, where it is told)


class FloorsOf(Work):
    """The floors of a work's rows, in ns."""

    def __init__(self, work: Work) -> None:
        super().__init__(*work.rows)

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self._floors = {row.name: _FloorOfMatch(row.floor, scale.round_ns, rng) for row in self.rows if row.floor}
        if not self._floors:
            raise CannotDo("has no floor")

    def round(self) -> dict[str, float]:
        return {name: floor.round() for name, floor in self._floors.items()}


class Part(Work):
    """One thing that the machine does, in ns."""

    machine = True

    def __init__(self, row: Row, make: Callable[[np.random.Generator], Step]) -> None:
        super().__init__(row)
        self._make = make

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self._step = self._make(rng)
        self._times = times_for(partial(elapsed, self._step), scale.round_ns)

    def round(self) -> dict[str, float]:
        return {self.rows[0].name: each(self._step, self._times)}


class EmptyCall(Work):
    """A call of a compiled function that takes one argument and does nothing, in ns."""

    machine = True

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        from triradix.compare.floor import empty

        self._loop, self._items = Loop("key", "empty(key)", "pass", {"empty": empty}), [None] * 64
        self._times = self._loop.times_for(self._items, scale.round_ns)

    def round(self) -> dict[str, float]:
        return {self.rows[0].name: self._loop(self._items, self._times)}


class _FloorOfMatch:
    """See `Floor`."""

    def __init__(self, floor: Floor, round_ns: int, rng: np.random.Generator) -> None:
        self._parts: list[tuple[Step, int, float]] = []  # a step, how often a round, how much of it a match needs
        for count, keys, stored in floor.pieces:
            self._add(compare(count, keys, stored, floor.key_bits, rng), round_ns, 1 / keys)
        self._add(chase(floor.working_set, rng), round_ns, floor.hops)
        if floor.slots:
            self._add(copy(floor.slots, rng), round_ns, 1)
        self._matches = floor.matches

    def _add(self, step: Step, round_ns: int, share: float) -> None:
        self._parts.append((step, times_for(partial(elapsed, step), round_ns), share))

    def round(self) -> float:
        return self._matches * sum(share * each(step, times) for step, times, share in self._parts)


def compare(count: int, keys: int, stored: int, key_bits: int, rng: np.random.Generator) -> Step:
    """Compares ``keys`` equal keys of ``count`` tokens once each."""
    from triradix.compare import floor

    runs = rng.integers(0, VOCABULARY, (stored, count), np.uint32)
    ours = np.ascontiguousarray(runs[np.arange(keys) % stored])
    if key_bits == 32:
        return lambda times: floor.compare_int32(ours, runs, times)
    wide = ours.astype(np.int64)
    return lambda times: floor.compare_int64(wide, runs, times)


def chase(working_set: int, rng: np.random.Generator) -> Step:
    """Dependent loads over that many bytes."""
    from triradix.compare import floor

    lines = max(2, working_set // 64)
    chain = floor.Chase(np.zeros(8 * lines, np.uintp), rng.permutation(lines).astype(np.uintp))
    chain.follow(lines)
    return chain.follow


def copy(count: int, rng: np.random.Generator) -> Step:
    """Copies ``count`` slots."""
    from triradix.compare import floor

    target, source = np.zeros(count, np.int64), np.arange(count, dtype=np.int64)
    return lambda times: floor.copy_int64(target, source, times)


def elapsed(step: Step, times: int) -> int:
    began = perf_counter_ns()
    step(times)
    return perf_counter_ns() - began


def each(step: Step, times: int) -> float:
    """ns of one."""
    return undisturbed((partial(elapsed, step, part), part) for part in shares(times))
