"""A signal handler that raises while a batch runs: the first k elements are done, the rest is not, all stays sound.

A signal may also come too early or too late to hit the batch; what must hold holds then too.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import Any, NoReturn

import numpy as np
from implementations import Implementation

COUNT = 5_000


class Interrupted(Exception):
    pass


def interrupt(*_: Any) -> NoReturn:
    raise Interrupted


def main() -> None:
    signal.signal(signal.SIGALRM, interrupt)
    hits = 0
    order = np.random.default_rng(3).permutation(COUNT)
    keys = [np.array([token], np.uint32) for token in order]
    whole = None
    for turn in range(7):
        cache = Implementation(sys.argv[1]).create()
        for token in range(COUNT):
            cache.insert([token], [token])
        began = time.perf_counter()
        try:
            if whole is not None:
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, whole * turn / 6))
            cache.match_prefix_many(keys, threads=2 if turn % 2 else 1)
            signal.setitimer(signal.ITIMER_REAL, 0)
            whole = whole or time.perf_counter() - began
        except Interrupted:
            hits += 1
        cache.check()
        done = cache.stats()["lookups"]
        assert cache.stats()["hit_tokens"] == cache.stats()["lookup_tokens"] == done <= COUNT
        first = order[:done].tolist()
        rest = sorted(set(range(COUNT)) - set(first))
        assert cache.evict(COUNT).indices.tolist() == rest + first
        cache.check()
    print(f"{hits} of 6 batches were interrupted")
    for threads in (1, 2):
        long_batch(threads)


def long_batch(threads: int) -> None:
    """One that takes so long that a signal most likely meets it somewhere in the middle."""
    cache = Implementation(sys.argv[1]).create()
    cache.insert(range_of(600), range_of(600))
    keys = [np.arange(length, dtype=np.int64) for length in range(1, 601)] * 100
    began = time.perf_counter()
    cache.match_prefix_many(keys, threads=threads)
    whole = time.perf_counter() - began
    cache.reset()
    node = cache.insert(range_of(600), range_of(600)).node
    try:
        signal.setitimer(signal.ITIMER_REAL, whole / 2)
        cache.match_prefix_many(keys, threads=threads)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupted:
        done = cache.stats()["lookups"]
        print(f"interrupted with threads={threads} after {done} of {len(keys)} keys")
        assert cache.stats()["hit_tokens"] == sum(len(key) for key in keys[:done])
    cache.check()
    assert cache.inc_lock_ref(node) == 600
    assert cache.match_prefix_many(keys[:1000], threads=threads).lengths.tolist() == [len(key) for key in keys[:1000]]


def range_of(count: int) -> list[int]:
    return list(range(count))


if __name__ == "__main__":
    main()
