"""Several Python threads and one cache."""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import count
from statistics import median
from time import perf_counter, sleep
from typing import Any

from triradix import PrefixCache

from .commit import needs
from .timing import Heavy
from .workload import IMPLEMENTATIONS, as_array, filled, keys_of_large, large, rows, slots

_BATCH = 64
WATCHED = 0.1  # seconds
CACHES, CACHE_RUNS = 64, 512
INTERRUPTED_KEYS = 200_000
_WRITES = {"no writes": 0, "1 write in 20": 20, "1 write in 2": 2}


class SharedCache(Heavy):
    """200 operations in all, shared out among the threads: the time is wall time for one operation.

    An operation is a batch of 64 keys of 256 tokens, matched with ``threads=1``, or a write: 256 fresh tokens inserted
    and as many evicted. Two threads that never waited for one another would halve the figure of one.
    """

    params = (IMPLEMENTATIONS, (1, 2), tuple(_WRITES))
    param_names = ("implementation", "Python threads", "mix")
    fresh = count(1_000_000)

    def setup(self, implementation: str, threads: int, mix: str) -> None:
        needs("match_prefix_many", "threads")
        self.cache, self.slots = large(implementation), slots(0, 256)
        keys, every = keys_of_large(), _WRITES[mix]
        operations: list[Any] = [keys[number * _BATCH % (len(keys) - _BATCH) :][:_BATCH] for number in range(200)]
        if every:
            for number, row in zip(range(0, 200, every), rows(next(self.fresh), 200, 256), strict=False):
                operations[number] = as_array(row)
        half = len(operations) // threads
        self.parts = [operations[part * half : (part + 1) * half] for part in range(threads)]
        self.one_of(len(operations), threads=2)  # by the same clock for one and for two

    def time_one_operation(self, *_: object) -> None:
        with ThreadPoolExecutor(len(self.parts)) as pool:
            list(pool.map(self._work, self.parts))

    def _work(self, operations: list[Any]) -> None:
        for operation in operations:
            if isinstance(operation, list):
                self.cache.match_prefix_many(operation, threads=1)
            else:
                self.cache.insert(operation, self.slots)
                self.cache.evict(256)


class GilHeld:
    """How much another Python thread loses while this one calls the cache: 0 if nothing, 100 if it stands still.

    The other thread counts in a loop of bytecode. It is watched for a tenth of a second at a time, in turns: while this
    thread works without the GIL (SHA-256 of large buffers, so that both cores are busy either way), and while it calls
    the cache. The figure is 100 · (1 − counted then / counted before), the median of 10 turns; below 0 is noise and
    counts as 0.
    """

    version = "1"
    params = (IMPLEMENTATIONS, ("batches of 10,000 keys", "single calls"))
    param_names = ("implementation", "calls")
    unit = "% of the other thread's time"
    timeout = 120.0

    def setup(self, implementation: str, calls: str) -> None:
        needs("match_prefix_many", "threads")
        self.cache, self.keys = large(implementation), keys_of_large()

    def track_gil_held(self, implementation: str, calls: str) -> float:
        if calls == "single calls":
            call: Callable[[], object] = lambda: [self.cache.match_prefix(key) for key in self.keys[:100]]  # noqa: E731
        else:
            call = lambda: self.cache.match_prefix_many(self.keys, threads=1)  # noqa: E731
        buffer = bytes(1 << 20)
        with _counting() as counted:
            turns: list[float] = []
            while len(turns) < 10:
                free, kept = _rate(counted, lambda: sha256(buffer)), _rate(counted, call)
                if free:  # else the other thread had no processor, and the turn says nothing
                    turns.append(lost(free, kept))
        return round(max(0.0, median(turns)), 1)


class ThreadScaling:
    """What two threads lose of twice the work of one: 0 if neither waits for the other, 50 if the second adds nothing.

    More than 50: together they get less done than one alone. A thread matches batches of 64 keys of 256 tokens with
    ``threads=1``. One thread and two are watched in turns, for a tenth of a second each; the figure is the median of 10
    turns, and below 0 is noise and counts as 0.
    """

    version = "1"
    params = (IMPLEMENTATIONS, ("no writes", "1 write in 20"))
    param_names = ("implementation", "mix")
    unit = "% of two threads' work"
    timeout = 120.0
    fresh = count(2_000_000)

    def setup(self, implementation: str, mix: str) -> None:
        needs("match_prefix_many", "threads")
        self.cache, self.slots, self.every = large(implementation), slots(0, 256), _WRITES[mix]
        keys = keys_of_large()
        self.batches = [keys[at : at + _BATCH] for at in range(0, len(keys) - _BATCH + 1, _BATCH)]

    def track_lost_work(self, implementation: str, mix: str) -> float:
        with ThreadPoolExecutor(2) as pool:
            turns = [lost(2 * self._rate(pool, 1), self._rate(pool, 2)) for _turn in range(10)]
        return round(max(0.0, median(turns)), 1)

    def _rate(self, pool: ThreadPoolExecutor, threads: int) -> float:
        """Operations a second, of all threads together."""
        return sum(pool.map(self._work, range(threads)))

    def _work(self, first: int) -> float:
        writes = iter([as_array(row) for row in rows(next(self.fresh), 64, 256)])
        began, done = perf_counter(), 0
        while (passed := perf_counter() - began) < WATCHED:
            cache, batch = self._turn(first, done)
            if self.every and done % self.every == self.every - 1 and (key := next(writes, None)) is not None:
                cache.insert(key, self.slots)
                cache.evict(256)
            else:
                cache.match_prefix_many(batch, threads=1)
            done += 1
        return done / passed

    def _turn(self, first: int, done: int) -> tuple[PrefixCache, list[Any]]:
        """What is next for a thread that has done so much."""
        return self.cache, self.batches[(first * 7 + done) % len(self.batches)]


class ManyCaches(ThreadScaling):
    """The same with 64 caches of 512 runs (data-parallel ranks): a thread goes round half of them, batch by batch."""

    def setup(self, implementation: str, mix: str) -> None:
        needs("match_prefix_many", "threads")
        self.slots, self.every = slots(0, 256), _WRITES[mix]
        self.caches = [filled(implementation, rows(number, CACHE_RUNS, 256)) for number in range(CACHES)]
        self.batches = [list(map(as_array, rows(number, CACHE_RUNS, 256)[:_BATCH])) for number in range(CACHES)]

    def _turn(self, first: int, done: int) -> tuple[PrefixCache, list[Any]]:
        number = first * CACHES // 2 + done % (CACHES // 2)
        return self.caches[number], self.batches[number]


class Interrupt:
    """From a Ctrl-C in the middle of a batch to the exception: seconds, the longest of 12 turns.

    The batch is of 200,000 keys of 256 tokens, with ``threads=`` that many; SIGINT comes when a third, half or two
    thirds of its time have passed.
    """

    version = "1"
    params = (IMPLEMENTATIONS, (1, 2))
    param_names = ("implementation", "threads")
    unit = "seconds"
    timeout = 300.0

    def setup(self, implementation: str, threads: int) -> None:
        needs("match_prefix_many", "threads")
        keys = keys_of_large()
        self.cache, self.keys = large(implementation), keys * (INTERRUPTED_KEYS // len(keys))

    def track_longest_wait(self, implementation: str, threads: int) -> float:
        began = perf_counter()
        self.cache.match_prefix_many(self.keys, threads=threads)
        whole = perf_counter() - began
        return max(self._wait(whole * part / 6, threads) for part in (2, 3, 4) * 4)

    def _wait(self, after: float, threads: int) -> float:
        sent = [0.0]

        def interrupt() -> None:
            sleep(after)
            sent[0] = perf_counter()
            os.kill(os.getpid(), signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        thread = threading.Thread(target=interrupt)
        try:
            thread.start()
            while True:  # a batch that was faster this time is followed by another
                self.cache.match_prefix_many(self.keys, threads=threads)
        except KeyboardInterrupt:
            return perf_counter() - sent[0]
        finally:
            thread.join()
            signal.signal(signal.SIGINT, before)


def lost(whole: float, kept: float) -> float:
    """Percent of ``whole`` that are missing from ``kept``; both are so many a second."""
    return 100 * (1 - kept / whole)


class _counting:
    """A thread that counts while this is entered; ``[0]`` of what it yields is how far it is."""

    def __enter__(self) -> list[int]:
        self._counted, self._goes_on = [0], True
        self._thread = threading.Thread(target=self._count)
        self._thread.start()
        return self._counted

    def __exit__(self, *exception: object) -> None:
        self._goes_on = False
        self._thread.join()

    def _count(self) -> None:
        counted = self._counted
        while self._goes_on:
            counted[0] += 1


def _rate(counted: list[int], call: Callable[[], object]) -> float:
    """Counts a second while ``call`` is repeated for a tenth of a second."""
    began, first = perf_counter(), counted[0]
    while (passed := perf_counter() - began) < WATCHED:
        call()
    return (counted[0] - first) / passed
