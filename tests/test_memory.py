"""Memory: nothing leaks, and `memory_bytes` says what is held. Each script of ``isolated/`` is a process."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from implementations import Implementation

from triradix import PrefixKey

CYCLES = {
    "calls": 1500,
    "failures": 1500,
    "namespaces": 4000,
    "caches": 800,
    "handles": 800,
    "branches": 1000,
    "resets": 2000,
}


@pytest.mark.parametrize("kind", CYCLES)
def test_nothing_leaks(isolated: Any, kind: str, thorough: bool) -> None:
    print(isolated("leaks.py", kind, str(CYCLES[kind] * (40 if thorough else 1))))


def test_memory_bytes(implementation: Implementation) -> None:
    """At least 4 bytes for a token and 4 for a small slot, unless it follows from others; not many times as much."""
    cache = implementation.create()
    empty = cache.stats()["memory_bytes"]
    key = np.arange(200_000, dtype=np.uint32)
    cache.insert(key, np.random.default_rng(1).permutation(len(key)))
    full = cache.stats()["memory_bytes"]
    assert 8 * len(key) <= full - empty <= 50 * len(key)
    for i in range(1000):
        cache.insert([2**31 + i, *range(20)], [0] * 21)
    assert cache.stats()["memory_bytes"] - full > 1000 * 8 * 21
    cache.reset()
    cache.insert(key, key.astype(np.int64))
    assert 4 * len(key) <= cache.stats()["memory_bytes"] - empty <= full


def test_reads_are_small(implementation: Implementation) -> None:
    """A run that was read up to each of its pages, the longest first, holds at most 64 bytes a page."""
    cache = implementation.create()
    empty = cache.stats()["memory_bytes"]
    key = np.arange(16_000, dtype=np.uint32)
    cache.insert(key, key.astype(np.int64))
    for end in range(len(key) - 1, 0, -1):
        cache.match_prefix(key[:end])
    assert cache.stats()["memory_bytes"] - empty <= 64 * len(key)
    cache.match_prefix(key)
    cache.check()


def test_a_prefix_key_keeps_no_cache_alive(implementation: Implementation) -> None:
    key = PrefixKey([1, 2, 3])
    gone = []
    for _ in range(5):
        cache = implementation.create()
        cache.insert(key, [1, 2, 3])
        cache.match_prefix(key)
        cache.match_prefix_many([key, key[:2]])
        gone.append(weakref.ref(cache))
    del cache
    gc.collect()
    assert [ref() for ref in gone] == [None] * 5
    assert len(key.memo) < 5


def test_values_and_keys_are_copied_in(implementation: Implementation) -> None:
    cache = implementation.create()
    key, values = np.arange(50, dtype=np.uint32), np.arange(50)
    cache.insert(key, values)
    key[:], values[:] = 7, 7
    assert cache.match_prefix(list(range(50))).indices.tolist() == list(range(50))
    freed = cache.evict(50)
    freed.indices[:] = 3
    cache.check()
