"""Too little address space: ``out_of_memory.py IMPLEMENTATION``.

Under a limit a little above what the process has, calls that need much are made until one fails. Each either does all
of its work or raises MemoryError and has changed nothing; nothing aborts, and with memory again everything works.
"""

from __future__ import annotations

import gc
import resource
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from implementations import Implementation

import triradix

MEGABYTE = 1 << 20
LENGTH = 1 << 19


def address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def limit(more: int | None) -> None:
    """So many bytes above what there is; None: no limit."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = resource.RLIM_INFINITY if more is None else address_space() + more
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def state(cache: Any) -> tuple[Any, ...]:
    private = ("nodes", "memory_bytes")
    stats = {name: count for name, count in cache.stats().items() if name not in private}
    return cache.total_size(), cache.protected_size(), stats


def attempt(cache: Any, call: Callable[[], Any], whole: bool = True) -> Any:
    """The result, or None after a MemoryError that has changed nothing (of a batch that is not ``whole``: no page)."""
    before = state(cache)
    try:
        return call()
    except MemoryError:
        pass  # and with it goes what its traceback held
    after = state(cache)
    assert after == before if whole else after[:2] == before[:2], (before, after)
    return None


def main() -> None:
    # The others let other threads in between the elements of a batch, and cannot take the first ones back
    # (docs/FINE_PRINT.md).
    whole_batches = sys.argv[1] == "cython"
    cache = Implementation(sys.argv[1]).create()
    key = np.arange(LENGTH, dtype=np.int64)
    values = np.arange(LENGTH, dtype=np.int64)
    small = array("q", range(10_000_000, 10_000_100))
    node = cache.insert(small, small).node
    many = [triradix.PrefixKey(small)] * 200_000
    results: dict[str, list[Any]] = {"insert": [], "match_many": [], "slots": [], "evict": []}
    for megabytes in (1, 4, 16, 64):
        for turn in range(24):
            key[0] = 1_000_000 * megabytes + turn
            gc.collect()
            limit(megabytes * MEGABYTE)
            results["insert"].append(attempt(cache, lambda: cache.insert(key, values)))
            found = cache.match_prefix(key[:1])
            limit(None)
            if results["insert"][-1] is None:
                assert found.length == 0
                break
            assert found.length == 1
        cache.check()
        limit(megabytes * MEGABYTE)
        results["match_many"].append(attempt(cache, lambda: cache.match_prefix_many(many), whole_batches))
        limit(None)
        cache.check()
        whole = cache.match_prefix(key)
        limit(megabytes * MEGABYTE)
        try:
            results["slots"].append(whole.indices)
        except MemoryError:
            results["slots"].append(None)
        limit(None)
        assert len(whole.indices) == whole.length
        limit(megabytes * MEGABYTE)
        evicted = attempt(cache, lambda: cache.evict(cache.evictable_size() // 2))
        results["evict"].append(evicted)
        limit(None)
        if evicted is not None:
            assert len(evicted.indices) == evicted.num_tokens
        cache.check()
        assert cache.insert(small, small).length == len(small)
    failed = {name: sum(result is None for result in made) for name, made in results.items()}
    print(failed)
    assert failed["insert"] and failed["match_many"] + failed["slots"] + failed["evict"], failed
    assert node is not None
    cache.reset()
    assert cache.insert(key, values).length == LENGTH
    cache.check()


main()
