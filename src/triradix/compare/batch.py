"""How the rows of batches are measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import numpy as np

from triradix.compare.adapter import Adapter, CannotDo
from triradix.compare.forks import Go, side_by_side
from triradix.compare.row import Row, Scale, Work, slots, tokens

RUNS_FOR_EACH_KEY = 4
"""How many runs the tree holds for each key that is matched."""


class Batch(Work):
    """Keys of 256 tokens: one by one, and as one batch. The tree is larger than what they ask for."""

    def __init__(self, *rows: Row, keys: int) -> None:
        super().__init__(*rows)
        self.count = keys

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.tree = adapter()
        runs = rng.integers(0, 2**16, (RUNS_FOR_EACH_KEY * self.count, 256), np.int64)
        runs[:, 0] = np.arange(len(runs))
        for number, run in enumerate(runs):
            self.tree.insert(self.tree.key(run), self.tree.values(slots(256 * number, 256)))
        self.keys = [self.tree.key(runs[number]) for number in rng.permutation(len(runs))[: self.count]]
        self.single = self.tree.loop("match")
        self.many = self.tree.loop("match of many", "keys") if "match of many" in self.tree.calls else None
        self.times = [
            max(scale.passes, loop.times_for(items, scale.round_ns)) if loop else 0
            for loop, items in ((self.single, self.keys), (self.many, [self.keys]))
        ]

    def answer(self) -> Any:
        return _lengths(self.tree, self.keys)

    def round(self) -> dict[str, float]:
        single, many, ratio = self.rows
        figures = {single.name: self.single(self.keys, self.times[0]) / 1000}
        if self.many is not None:
            figures[many.name] = self.many([self.keys], self.times[1]) / len(self.keys) / 1000
            figures[ratio.name] = figures[many.name] / figures[single.name]
        return figures


class Waiting(Work):
    """A queue of requests with a shared prompt, matched at one step and, which is measured, again at the next."""

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.tree = adapter()
        prompt = tokens(rng, 2048)
        self.keys = []
        for number in range(scale.waiting):
            end = tokens(rng, 256)
            end[0] = number
            run = np.concatenate((prompt, end))
            self.tree.insert(self.tree.key(run), self.tree.values(slots(0, len(run))))
            self.keys.append(self.tree.prefix_key(run))
        batch = "match of many" in self.tree.calls
        self.loop = self.tree.loop("match of many", "keys") if batch else self.tree.loop("match")
        self.items: list[Any] = [self.keys] if batch else self.keys
        self.passes = scale.passes
        self.round()

    def answer(self) -> Any:
        return _lengths(self.tree, self.keys)

    def round(self) -> dict[str, float]:
        return {self.rows[0].name: self.loop(self.items, self.passes) * len(self.items) / 1e6}


def _lengths(tree: Adapter, keys: list[Any]) -> list[list[int]]:
    """What is found of some keys: one by one, and by the call that takes many, where there is one."""
    some = keys[:5]
    found = [tree.match(key)[0] for key in some]
    if "match of many" not in tree.calls:
        return [found, found]
    return [found, [int(length) for length in tree.once("match of many", keys=some).lengths]]


class Parallel(Batch):
    """What several threads do with batches: on every core, and only for systems that have such calls."""

    every_core = True
    most_rounds = 5

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        if "match of many" not in adapter.calls:
            raise CannotDo("has no batches")
        super().setup(adapter, scale, rng)
        self.passes = scale.passes

    def match(self, keys: list[Any], threads: int = 1) -> None:
        self.tree.cache.match_prefix_many(keys, threads=threads)  # type: ignore[attr-defined]

    def least(self, measure: Callable[[], int]) -> int:
        return min(measure() for _ in range(self.passes))


class Threads(Parallel):
    """The same batch on two threads, beside one, and beside two processes that each do the whole of it.

    The processes are copies of this one: a tree each, whose pages of memory are the same until one writes to them, as
    those of two threads are. All three do the whole batch, since a half would find more of itself in a processor's
    cache; and all are the least of a few passes, since what other programs take falls on one pass and not on another.
    """

    def round(self) -> dict[str, float]:
        one = self.least(lambda: self._pass(threads=1))
        speedup = one / self.least(lambda: self._pass(threads=2))
        parts = [self._alone_on(core) for core in sorted(os.sched_getaffinity(0))[:2]]
        ceiling = 2 * one / self.least(lambda: max(side_by_side(parts)))
        figures = speedup, ceiling, speedup / min(1.8, 0.95 * ceiling)
        return dict(zip((row.name for row in self.rows), figures, strict=True))

    def _pass(self, threads: int) -> int:
        """Its ns."""
        began = perf_counter_ns()
        self.match(self.keys, threads)
        return perf_counter_ns() - began

    def _alone_on(self, core: int) -> Callable[[Go], int]:
        def part(go: Go) -> int:
            os.sched_setaffinity(0, {core})
            self._pass(threads=1)  # its own copy of what it writes
            go()
            return self._pass(threads=1)

        return part
