"""How memory is measured: the resident memory of a process that holds one cache, and what the collector does to it."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path
from typing import Any

import numpy as np

from triradix.compare.adapter import Adapter, CannotDo, Tokens
from triradix.compare.row import Row, Scale, Slots, Work, slots, tokens
from triradix.replay.recorder import CollectorPauses


def give_back() -> None:
    """Return what is free to the system, so that nothing that a cache then takes was resident before."""
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # glibc's
        trim(0)


def resident_anonymous() -> int:
    """Bytes of this process's own memory, as the system counts them. Linux only: else CannotDo."""
    gc.collect()
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    raise CannotDo("the resident memory of a process can be read on Linux only")


class _Held(Work):
    """Bytes for each of ``per`` that a cache holds, after it was filled in a process of its own."""

    afresh = True

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.adapter, self.scale, self.rng = adapter, scale, rng
        warm = adapter()  # what the first cache alone allocates is none of its tokens'
        warm.insert(warm.key(slots(0, 64)), warm.values(slots(0, 64)))
        self.found = warm.match(warm.key(slots(0, 64)))[0]

    def answer(self) -> Any:
        return self.found

    def __init__(self, *rows: Row, slots: Slots = slots, first_slot: int = 0) -> None:
        super().__init__(*rows)
        self.slots, self.first_slot = slots, first_slot

    def held(self, runs: int, length: int) -> float:
        """Bytes a run, for ``runs`` runs of ``length`` tokens that have nothing in common."""
        tree = self.adapter()
        self.slots(0, length)  # what it keeps is none of the tree's
        give_back()
        before = resident_anonymous()
        for number in range(runs):
            run = tokens(self.rng, length)
            run[0] = number
            tree.insert(tree.key(run), tree.values(self.slots(self.first_slot + number * length, length)))
        return (resident_anonymous() - before) / runs


class BytesPerToken(_Held):
    def round(self) -> dict[str, float]:
        return {self.rows[0].name: self.held(self.scale.long_runs, 8192) / 8192}


class BytesPerLeaf(_Held):
    def round(self) -> dict[str, float]:
        return {self.rows[0].name: self.held(self.scale.small_leaves, 16)}


class Collector(_Held):
    """The collector's pauses while nodes are built, and the objects that it will walk from then on."""

    def round(self) -> dict[str, float]:
        tree = self.adapter()
        keys = []
        for number in range(self.scale.nodes):
            run = tokens(self.rng, 16)
            run[0] = number
            keys.append(tree.key(run))
        some = tree.values(slots(0, 16))
        with CollectorPauses() as pauses:
            before = len(gc.get_objects())
            for key in keys:
                tree.insert(key, some)
            after = len(gc.get_objects())
        pause, objects = self.rows
        return {pause.name: sum(pauses.pauses_ns) / 1e6, objects.name: float(max(0, after - before))}


class Turnover(_Held):
    """A full cache whose content is replaced ten times: its memory then, and after two times, beside the beginning."""

    def round(self) -> dict[str, float]:
        tree, capacity = self.adapter(), self.scale.capacity
        give_back()
        before = resident_anonymous()
        self.number = 0
        self._insert(tree, capacity)
        fresh = resident_anonymous() - before
        second = last = 0
        for turnover in range(10):
            for _ in range(32):
                tree.evict(capacity // 32)
                tree.forget_freed()
                self._insert(tree, capacity // 32)
            last = resident_anonymous() - before
            if turnover == 1:
                second = last
        ratio, growth = self.rows
        return {ratio.name: last / fresh, growth.name: last / second}

    def _insert(self, tree: Adapter, count: int) -> None:
        """Runs of 64 to 1,024 tokens, ``count`` in all."""
        while count > 0:
            length = min(count, int(self.rng.integers(64, 1025)))
            run = tokens(self.rng, length)
            run[0] = self.number
            self.number += 1
            tree.insert(tree.key(run), tree.values(slots(0, length)))
            count -= length


class Reads(_Held):
    """Runs of 2,000 tokens, matched up to every one of their pages, the longest first: bytes a page, and one match."""

    def round(self) -> dict[str, float]:
        runs = [tokens(self.rng, 2000) for _ in range(self.scale.read_runs)]
        for number, run in enumerate(runs):
            run[0] = number
        fresh, keys, own = self._filled(runs)
        read, _, _ = self._filled(runs)
        give_back()
        before = resident_anonymous()
        for key in keys:
            for end in range(len(key) - 1, 0, -1):
                read.match(key[:end])
        give_back()  # the keys of the reads are none of what the cache holds
        added = resident_anonymous() - before
        after_reads = read.loop("match")(keys)  # the first whole match since
        per_page, ratio = self.rows
        return {
            per_page.name: (own + added) / sum(map(len, keys)),
            ratio.name: after_reads / fresh.loop("match")(keys),
        }

    def _filled(self, runs: list[Tokens]) -> tuple[Adapter, list[Any], int]:
        """A cache that holds the runs, their keys, and its bytes."""
        tree = self.adapter()
        keys = [tree.key(run) for run in runs]
        give_back()
        before = resident_anonymous()
        for number, key in enumerate(keys):
            tree.insert(key, tree.values(slots(2000 * number, 2000)))
        return tree, keys, resident_anonymous() - before


class AloneAgain(Work):
    """A path that had a branch at every token and has none any more, beside one that never had."""

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        length = scale.path
        run = tokens(rng, length)
        trees = [adapter(), adapter()]
        keys = [tree.key(run) for tree in trees]
        for tree, key in zip(trees, keys, strict=True):
            tree.insert(key, tree.values(slots(0, length)))
        alone = trees[0]
        for at in range(1, length):
            branch = run[: at + 1].copy()
            branch[at] += 1
            alone.insert(alone.key(branch), alone.values(slots(0, at + 1)))
        found = alone.match(keys[0])[0]  # the path is now the youngest: what goes are the branches
        self.found = [found, alone.evict(length - 1), alone.match(keys[0])[0]]
        alone.forget_freed()
        self.loops = [tree.loop("match") for tree in trees]
        self.items = [[key] * 64 for key in keys]
        self.times = [loop.times_for(items, scale.round_ns) for loop, items in zip(self.loops, self.items, strict=True)]

    def answer(self) -> Any:
        return self.found

    def round(self) -> dict[str, float]:
        again, fresh = (
            loop(items, times) for loop, items, times in zip(self.loops, self.items, self.times, strict=True)
        )
        return {self.rows[0].name: again / fresh}
