"""One process under the load that is profiled: threads that match, one that inserts and evicts, one that schedules.

    python -m profiles.load IMPLEMENTATION MATCHERS BATCH

Speaks lines of JSON. It warms up and says ``{"pid": …, "alone": …}``, where ``alone`` is the scheduler's progress per
second while no other thread runs. Then the line ``begin`` on its standard input begins a window, and ``end`` ends it;
each is answered by the counts so far. The end of the input ends the process. The three roles are three functions, so
that a profile tells them apart.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import triradix

SHARED = 2048
OWN = 256
PROMPTS = 512
FRESH = 512
CAPACITY = 256 * FRESH
SECONDS_ALONE = 0.5
SECONDS_WARM = 0.5
KEPT = 1 << 14
"""Latencies that a matcher keeps: the newest, a power of two."""


def tokens(draw: random.Random, length: int) -> array[int]:
    return array("q", draw.choices(range(128_000), k=length))


@dataclass
class Counts:
    """What the roles have done. Each counter has one writer, so none needs a lock."""

    batch: int
    calls: list[int]
    """Of each matcher."""
    latencies: list[array[int]]
    """Of each matcher, in ns: call number n stands at n modulo `KEPT`."""
    inserts: int = 0
    progress: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    failures: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, matchers: int, batch: int) -> Counts:
        return cls(batch, [0] * matchers, [array("q", bytes(8 * KEPT)) for _ in range(matchers)])

    def now(self) -> dict[str, Any]:
        if self.failures:
            raise SystemExit(f"a thread of the load failed: {self.failures[0]}")
        done = {"matches": sum(self.calls) * self.batch, "inserts": self.inserts, "progress": self.progress}
        return {"time": time.perf_counter(), **done}

    def since(self, calls: list[int]) -> list[int]:
        """The latencies of the matchers' calls since they had made so many, sorted; the newest where too many."""
        found: list[int] = []
        for before, after, kept in zip(calls, self.calls, self.latencies, strict=True):
            found += [kept[number % KEPT] for number in range(max(before, after - KEPT), after)]
        return sorted(found)


def match(cache: triradix.PrefixCache, keys: list[array[int]], batch: int, counts: Counts, number: int) -> None:
    """A worker that looks up waiting requests, ``batch`` at a time; 1 stands for single calls of ``match_prefix``."""
    draw, clock, kept = random.Random(number), time.perf_counter_ns, counts.latencies[number]
    while not counts.stop.is_set():
        first = draw.randrange(len(keys) - batch + 1)
        some = keys[first : first + batch]
        began = clock()
        if batch == 1:
            cache.match_prefix(some[0])
        else:
            cache.match_prefix_many(some, threads=1)
        kept[counts.calls[number] % KEPT] = clock() - began
        counts.calls[number] += 1


def insert_and_evict(cache: triradix.PrefixCache, counts: Counts) -> None:
    """The writer: what finished requests leave behind comes in, and as much goes."""
    draw = random.Random(-1)
    slots = array("q", range(FRESH))
    key = tokens(draw, FRESH)
    while not counts.stop.is_set():
        key[0] = 128_000 + counts.inserts  # above the vocabulary, so that each key is a new one
        cache.insert(key, slots, "finished")
        counts.inserts += 1
        if counts.inserts * FRESH > CAPACITY:
            cache.evict_namespace("finished", FRESH)


def schedule(counts: Counts) -> None:
    """The engine's own Python code: it touches no cache and wants only to get on."""
    while not counts.stop.is_set():
        counts.progress += 1


ROLES = {"match": "matchers", "insert_and_evict": "writer", "schedule": "scheduler"}
"""The function that a role's threads run → its name."""


def start(role: Callable[..., None], *arguments: object, counts: Counts) -> threading.Thread:
    def run() -> None:
        try:
            role(*arguments)
        except BaseException as error:
            counts.failures.append(f"{role.__name__}: {error!r}")
            raise

    thread = threading.Thread(target=run, name=role.__name__, daemon=True)
    thread.start()
    return thread


def progress_alone() -> float:
    """Progress per second of a scheduler that has the process for itself."""
    counts = Counts.of(0, 1)
    began = time.perf_counter()
    thread = start(schedule, counts, counts=counts)
    time.sleep(SECONDS_ALONE)
    counts.stop.set()
    thread.join()
    return counts.progress / (time.perf_counter() - began)


def processor_times(threads: list[threading.Thread]) -> dict[str, list[float]]:
    """Role → seconds that its threads ran, and that they were ready and waited for a processor. Linux counts both."""
    found: dict[str, list[float]] = {role: [0.0, 0.0] for role in ROLES.values()}
    for thread in threads:
        ran, queued, _slices = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()
        found[ROLES[thread.name]][0] += int(ran) / 1e9
        found[ROLES[thread.name]][1] += int(queued) / 1e9
    return found


def answer(counts: Counts, threads: list[threading.Thread]) -> None:
    """Answer what the standard input asks, until it ends."""
    calls = list(counts.calls)
    for line in sys.stdin:
        reply = {**counts.now(), "processor": processor_times(threads)}
        if line.strip() == "begin":
            calls = list(counts.calls)
        else:
            found = counts.since(calls)
            reply["p99"] = found[len(found) * 99 // 100] / 1e9 if found else None
        print(json.dumps(reply), flush=True)


def main(implementation: str, matchers: int, batch: int) -> None:
    cache = triradix.create(implementation)
    draw = random.Random(0)
    shared = tokens(draw, SHARED)
    keys = [shared + tokens(draw, OWN) for _ in range(PROMPTS)]
    for number, key in enumerate(keys):
        cache.insert(key, array("q", range(number * len(key), (number + 1) * len(key))))

    alone = progress_alone()
    counts = Counts.of(matchers, batch)
    threads = [start(match, cache, keys, batch, counts, number, counts=counts) for number in range(matchers)]
    threads.append(start(insert_and_evict, cache, counts, counts=counts))
    threads.append(start(schedule, counts, counts=counts))
    time.sleep(SECONDS_WARM)
    # On a busy machine a thread may not have had its first turn by then.
    while not all(counts.now()[what] for what in ("matches", "inserts", "progress")):
        time.sleep(0.01)
    print(json.dumps({"pid": os.getpid(), "alone": alone}), flush=True)
    answer(counts, threads)
    counts.stop.set()
    for thread in threads:
        thread.join()
    cache.check()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
