"""How the rows about Python's own threads are measured: what a batch leaves to another, and what two get done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from math import ceil
from time import perf_counter_ns
from typing import Any

import numpy as np

from triradix.compare.adapter import Adapter
from triradix.compare.batch import Parallel
from triradix.compare.row import Scale

_PASS_NS = 5_000_000
_COMPILED_NS = 4_000
"""A key of a batch takes compiled trees a tenth of it, and plain Python twice as long."""
_TURNS = 3
_LONG_NS = 20_000_000
"""What a long batch takes: longer than a thread waits for the GIL (5 ms)."""


class PythonThreads(Parallel):
    """The speed that another thread keeps while a batch runs, and batches of 64 keys from two threads beside one.

    The other thread counts in a loop of bytecode. Its own speed is that beside a thread which works without the GIL
    (SHA-256 of a long buffer), so that two cores are busy either way. The batches are detached: single short calls keep
    the GIL on purpose. Of each the best of a few turns counts, since what other programs take falls on one of them and
    not on another.
    """

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        super().setup(adapter, scale, rng)
        self.turn_ns = 10 * scale.round_ns
        # As many as take one thread about PASS_NS: the shorter, the rarer another program comes in between.
        batches = [self.keys[first : first + 64] for first in range(0, len(self.keys), 64)]
        taken = min(self._pass([batches]) for _ in range(2))
        # Plain Python waits for the GIL at every key, 5 ms each time: a long batch would take minutes.
        compiled = taken < _COMPILED_NS * len(self.keys)
        self.long = self.keys * ceil(_LONG_NS / taken) if compiled else self.keys[:64]
        half = max(1, round(min(1.0, _PASS_NS / taken) * len(batches) / 2))
        self.halves = [batches[:half], batches[half : 2 * half]]

    def round(self) -> dict[str, float]:
        return dict(zip((row.name for row in self.rows), (self._kept(), self._speedup()), strict=True))

    def _kept(self) -> float:
        buffer = bytes(1 << 24)
        with Counting() as other:
            own = kept = 0.0
            for _ in range(_TURNS):
                own = max(own, other.speed(lambda: sha256(buffer), self.turn_ns))
                kept = max(kept, other.speed(lambda: self.match(self.long), self.turn_ns))
        return kept / own

    def _speedup(self) -> float:
        first, second = self.halves
        return self.least(lambda: self._pass([first + second])) / self.least(lambda: self._pass(self.halves))

    def _pass(self, parts: list[list[Any]]) -> int:
        """ns until all have been matched, each part by a thread of its own."""
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: None, parts))  # the threads are there
            began = perf_counter_ns()
            list(pool.map(lambda batches: list(map(self.match, batches)), parts))
            return perf_counter_ns() - began


class Counting:
    """A thread that counts while this is entered."""

    def __enter__(self) -> Counting:
        self._counted, self._goes_on = 0, True
        self._thread = threading.Thread(target=self._count)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._goes_on = False
        self._thread.join()

    def _count(self) -> None:
        while self._goes_on:
            self._counted += 1

    def speed(self, call: Callable[[], object], least_ns: int) -> float:
        """Counts in a ns while this thread makes the call, again and again for that long."""
        began, first = perf_counter_ns(), self._counted
        while (passed := perf_counter_ns() - began) < least_ns:
            call()
        return (self._counted - first) / passed
