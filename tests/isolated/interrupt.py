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


if __name__ == "__main__":
    main()
