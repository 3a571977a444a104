"""No choice of tokens makes an operation dearer than its honest cost.

There are no time limits here: the CPU time of n operations is compared with that of many times n. A cost that
grows as it should stays far below the bounds, a quadratic one far above.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from implementations import Implementation

TIMES = 8  # how much larger the second measurement is
BOUND = TIMES**1.6  # linear: about 8; n log n: about 10; quadratic: 64


def cpu(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def growth(measure: Callable[[int], float], small: int, bound: float, repeats: int = 4) -> None:
    """``measure(n)`` gives a time; that of TIMES as many must not be more than ``bound`` times as long.

    Other work on the machine only ever adds time, so the least of several measurements counts.
    """
    ratios: list[float] = []
    few, many = [], []
    for _ in range(repeats):
        few.append(measure(small))
        many.append(measure(small * TIMES))
        ratios.append(min(many) / max(min(few), 1e-4))
        if ratios[-1] < bound:
            return
    raise AssertionError(
        f"{TIMES} times as many took {ratios[-1]:.1f} times as long (bound {bound:.1f}): {few}, {many}"
    )


def inverse(odd: int) -> int:
    return pow(odd, -1, 2**32)


FAMILIES: dict[str, Callable[[int], Any]] = {
    "low bits equal": lambda n: np.arange(n, dtype=np.uint64) * 2**17 % 2**32 + np.arange(n, dtype=np.uint64) // 2**15,
    "multiples of 2**12": lambda n: np.arange(n, dtype=np.uint64) << 12,
    "high bits only": lambda n: (np.arange(n, dtype=np.uint64) << 16) | 0xFFFF,
    "golden ratio, high bits": lambda n: np.arange(n, dtype=np.uint64) * inverse(0x9E3779B1) % 2**32,
    "golden ratio, low bits": lambda n: (np.arange(n, dtype=np.uint64) << 15) * inverse(0x9E3779B1) % 2**32,
    "murmur constant": lambda n: (np.arange(n, dtype=np.uint64) << 15) * inverse(0x85EBCA6B) % 2**32,
    "multiples of a prime": lambda n: np.arange(n, dtype=np.uint64) * 65537 % 2**32,
    "in a row": lambda n: np.arange(n, dtype=np.uint64),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("page_size", [1, 2])
def test_many_children(implementation: Implementation, family: str, page_size: int) -> None:
    """One page with very many children, whose first tokens are chosen to collide."""

    def measure(count: int) -> float:
        tokens = np.unique(FAMILIES[family](count)).astype(np.uint32)
        assert len(tokens) == count
        cache = implementation.create(page_size=page_size)
        keys = np.empty((count, 2 * page_size), np.uint32)
        keys[:, :page_size], keys[:, page_size:] = 5, tokens[:, None]
        values = np.zeros(2 * page_size, np.int64)

        def work() -> None:
            for key in keys:
                cache.insert(key, values)
            for key in keys:
                cache.match_prefix(key)
            cache.evict(count * page_size)

        return cpu(work)

    growth(measure, 500, BOUND)


@pytest.mark.parametrize("policy", ["lru", "lfu", "fifo", "mru", "filo", "priority", "slru"])
def test_evict_one_of_many(implementation: Implementation, policy: str) -> None:
    """Freeing one page costs the logarithm of the number of leaves at most."""

    def measure(leaves: int) -> float:
        cache = implementation.create(eviction_policy=policy)
        for token in range(leaves):
            cache.insert([token], [token])

        def work() -> None:
            for turn in range(300):
                cache.evict(1)
                cache.insert([leaves + turn], [0])

        return cpu(work)

    growth(measure, 1000, 4)


def test_locks_among_many_leaves(implementation: Implementation) -> None:
    def measure(leaves: int) -> float:
        cache = implementation.create()
        for token in range(leaves):
            cache.insert([1, token], [1, token])
        nodes = [cache.match_prefix([1, token]).node for token in range(300)]

        def work() -> None:
            for node in nodes:
                cache.inc_lock_ref(node)
            for node in nodes:
                cache.dec_lock_ref(node)

        return cpu(work)

    growth(measure, 1000, 4)


def test_resume_does_not_walk_the_context(implementation: Implementation) -> None:
    """A match or an insert below a node costs what its own key costs, however deep the node is."""

    def measure(depth: int) -> float:
        cache = implementation.create()
        node = None
        for i in range(depth):  # a branch at each page, so that the path is a path of branches
            node = cache.insert([i], [i], start=node).node
            cache.insert([2**31], [i], start=node)

        def work() -> None:
            for turn in range(300):
                cache.match_prefix([7, 8], start=node)
                cache.peek_prefix([7, 8], start=node)
                cache.insert([turn + 10], [7], start=node)
                cache.inc_lock_ref(node)
                cache.inc_lock_ref(node)
                cache.dec_lock_ref(node)

        deepest = cache.match_prefix([2**30], start=node).node
        cache.inc_lock_ref(deepest)
        return cpu(work)

    growth(measure, 500, 4)


def test_reads_leave_nothing_behind(implementation: Implementation) -> None:
    """Matches that end everywhere in one long run do not make later ones slower, nor fill memory."""
    cache = implementation.create()
    key = np.arange(4000, dtype=np.uint32)
    cache.insert(key, key.astype(np.int64))
    rng = np.random.default_rng(1)

    def measure(rounds: int) -> float:
        ends = rng.integers(0, 4000, rounds)
        return cpu(lambda: [cache.match_prefix(key[:end]) for end in ends])

    growth(measure, 400, BOUND)
    held = cache.stats()["memory_bytes"]
    measure(4000)
    assert cache.stats()["memory_bytes"] < 2 * held
    cache.check()


def test_the_whole_match_after_reads_everywhere(implementation: Implementation) -> None:
    """However many of its pages a run was read up to, the longest first: one whole match makes up for all of them."""
    key = np.arange(2000, dtype=np.uint32)

    def measure(reads: int) -> float:
        caches = [implementation.create() for _ in range(40)]
        for cache in caches:
            cache.insert(key, key.astype(np.int64))
            for end in range(2000 - 1, 0, -2000 // reads):
                cache.match_prefix(key[:end])
        return cpu(lambda: [cache.match_prefix(key) for cache in caches])

    growth(measure, 250, 4)


def test_namespaces_do_not_slow_each_other(implementation: Implementation) -> None:
    def measure(count: int) -> float:
        cache = implementation.create()
        for number in range(count):
            cache.insert([1, 2], [number, number], f"tenant {number}")

        def work() -> None:
            for turn in range(300):
                cache.match_prefix([1, 2], f"tenant {turn}")
                cache.evict(1)
                cache.evict_namespace(f"tenant {turn + 300}", 1)

        return cpu(work)

    growth(measure, 1000, 4)
