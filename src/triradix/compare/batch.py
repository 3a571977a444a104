"""How the rows of batches are measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import numpy as np

from triradix.compare.adapter import Adapter, CannotDo
from triradix.compare.forks import Go, side_by_side
from triradix.compare.row import Scale, Work, slots, tokens

RUNS_FOR_EACH_KEY = 4
"""How many runs the tree holds for each key that is matched: so that it is larger than a cache of the processor."""

_PASSES = 4


class Batch(Work):
    """Keys of 256 tokens over a tree that no processor's cache holds: one by one, and as one batch."""

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.tree = adapter()
        runs = rng.integers(0, 2**16, (RUNS_FOR_EACH_KEY * scale.batch, 256), np.int64)
        runs[:, 0] = np.arange(len(runs))
        for number, run in enumerate(runs):
            self.tree.insert(self.tree.key(run), self.tree.values(slots(256 * number, 256)))
        self.keys = [self.tree.key(runs[number]) for number in rng.permutation(len(runs))[: scale.batch]]
        self.single = self.tree.loop("match")
        self.many = self.tree.loop("match of many", "keys") if "match of many" in self.tree.calls else None
        self.single(self.keys)

    def answer(self) -> Any:
        return [self.tree.match(key)[0] for key in self.keys[:5]]

    def round(self) -> dict[str, float]:
        single, many, ratio = self.rows
        figures = {single.name: self.single(self.keys) / 1000}
        if self.many is not None:
            figures[many.name] = self.many([self.keys], _PASSES) / len(self.keys) / 1000
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
        self.round()

    def answer(self) -> Any:
        return [self.tree.match(key)[0] for key in self.keys[:5]]

    def round(self) -> dict[str, float]:
        return {self.rows[0].name: self.loop(self.items, _PASSES) * len(self.items) / 1e6}


class Threads(Batch):
    """The same batch on two threads, beside one, and beside two processes with a tree of their own each."""

    most_rounds = 7

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        if "match of many on two threads" not in adapter.calls:
            raise CannotDo("has no batches")
        self.cores = _unpin()
        if len(self.cores) < 2:
            raise CannotDo("needs two cores")
        super().setup(adapter, scale, rng)
        self.two = self.tree.loop("match of many on two threads", "keys")

    def round(self) -> dict[str, float]:
        assert self.many is not None
        one = self.many([self.keys], _PASSES)
        speedup = one / self.two([self.keys], _PASSES)
        half = len(self.keys) // 2
        parts = [self._half(core, self.keys[:half]) for core in self.cores[:2]]
        ceiling = one / max(side_by_side(parts))
        return dict(
            zip((row.name for row in self.rows), (speedup, ceiling, speedup / min(1.8, 0.95 * ceiling)), strict=True)
        )

    def _half(self, core: int, keys: list[Any]) -> Callable[[Go], int]:
        def part(go: Go) -> int:
            os.sched_setaffinity(0, {core})
            many = self.tree.cache.match_prefix_many  # type: ignore[attr-defined]
            many(keys, threads=1)  # its own copy of what it writes
            go()
            began = perf_counter_ns()
            for _ in range(_PASSES):
                many(keys, threads=1)
            return (perf_counter_ns() - began) // _PASSES

        return part


def _unpin() -> list[int]:
    """Let this process use every core that it may."""
    if not hasattr(os, "sched_setaffinity"):
        raise CannotDo("cannot choose its cores on this system")
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    return sorted(os.sched_getaffinity(0))
