"""Forks while other threads run batches: child and parent both go on, each with its own cache.

A child that hangs is ended by its alarm, so that a deadlock is a failure and not a wait for ever.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from typing import Any

from implementations import Implementation

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of any fork beside threads
KEYS = [[i % 11, i % 5, i % 3, 7] * 10 for i in range(500)]


def use(cache: Any, number: int) -> None:
    """Everything that might wait for a lock, or for a thread that is not there after a fork."""
    cache.check()
    before = cache.total_size()
    assert len(cache.all_indices()) == before
    cache.insert([10**6 + number, 1, 2, 3], [1, 2, 3, 4])
    assert cache.total_size() == before + 4
    match = cache.match_prefix([10**6 + number, 1, 2, 3])
    assert match.indices.tolist() == [1, 2, 3, 4]
    for threads in (None, 1, 2):
        batch = cache.match_prefix_many(KEYS, threads=threads)
        assert batch.lengths.min() == 40
        assert cache.peek_prefix_many(KEYS, threads=threads).min() == 40
    cache.inc_lock_ref(match.node)
    cache.dec_lock_ref(match.node)
    cache.block_hashes(match.node)
    cache.evict(3)
    cache.stats()
    cache.take_events()
    repr(cache)
    cache.check()


def main() -> None:
    cache = Implementation(sys.argv[1]).create(enable_kv_cache_events=True)
    other = Implementation(sys.argv[1]).create()
    for key in KEYS:
        cache.insert(key, key)
        other.insert(key, key)
    # keeps what the batches match from being evicted by `use`
    for key in KEYS:
        cache.inc_lock_ref(cache.match_prefix(key).node)
    stop = threading.Event()
    failures: list[BaseException] = []

    def batches(threads: int | None) -> None:
        try:
            while not stop.is_set():
                cache.match_prefix_many(KEYS, threads=threads)
                other.match_prefix_many(KEYS, threads=threads)
                other.insert([1, 2, 3], [1, 2, 3])
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=batches, args=(threads,)) for threads in (1, 2)]
    for worker in workers:
        worker.start()
    try:
        for number in range(6):
            child = os.fork()
            if child == 0:
                signal.alarm(300)
                status = 1
                try:
                    use(cache, number)
                    use(other, number)
                    assert cache.reset() is None and cache.total_size() == 0
                    status = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stderr.flush()
                    os._exit(status)
            use(cache, number)
            _, status = os.waitpid(child, 0)
            assert status == 0, f"child {number} ended with {status}"
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert not failures, failures
    use(cache, 99)
    use(other, 99)


if __name__ == "__main__":
    main()
