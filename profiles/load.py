"""One process under the load that is profiled: threads that match, one that inserts and evicts, one that schedules.

    python -m profiles.load IMPLEMENTATION MATCHERS BATCH

Speaks lines of JSON. It warms up and says ``{"pid": …, "alone": …}``, where ``alone`` is the scheduler's progress per
second while no other thread runs. Then each line on its standard input is answered by the counts so far; the end of the
input ends it. The three roles are three functions, so that a profile tells them apart.
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

import triradix

SHARED = 2048
OWN = 256
PROMPTS = 512
FRESH = 512
CAPACITY = 256 * FRESH
SECONDS_ALONE = 0.5
SECONDS_WARM = 0.5


def tokens(draw: random.Random, length: int) -> array[int]:
    return array("q", draw.choices(range(128_000), k=length))


@dataclass
class Counts:
    """What the roles have done. Each counter has one writer, so none needs a lock."""

    matches: list[int]
    inserts: int = 0
    progress: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    failures: list[str] = field(default_factory=list)

    def as_json(self) -> str:
        if self.failures:
            raise SystemExit(f"a thread of the load failed: {self.failures[0]}")
        now = time.perf_counter()
        return json.dumps(
            {"time": now, "matches": sum(self.matches), "inserts": self.inserts, "progress": self.progress}
        )


def match(cache: triradix.PrefixCache, keys: list[array[int]], batch: int, counts: Counts, number: int) -> None:
    """A worker that looks up waiting requests, ``batch`` at a time; 1 stands for single calls of ``match_prefix``."""
    draw = random.Random(number)
    while not counts.stop.is_set():
        first = draw.randrange(len(keys) - batch + 1)
        if batch == 1:
            cache.match_prefix(keys[first])
        else:
            cache.match_prefix_many(keys[first : first + batch], threads=1)
        counts.matches[number] += batch


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
    counts = Counts(matches=[])
    began = time.perf_counter()
    thread = start(schedule, counts, counts=counts)
    time.sleep(SECONDS_ALONE)
    counts.stop.set()
    thread.join()
    return counts.progress / (time.perf_counter() - began)


def main(implementation: str, matchers: int, batch: int) -> None:
    cache = triradix.create(implementation)
    draw = random.Random(0)
    shared = tokens(draw, SHARED)
    keys = [shared + tokens(draw, OWN) for _ in range(PROMPTS)]
    for number, key in enumerate(keys):
        cache.insert(key, array("q", range(number * len(key), (number + 1) * len(key))))

    alone = progress_alone()
    counts = Counts(matches=[0] * matchers)
    threads = [start(match, cache, keys, batch, counts, number, counts=counts) for number in range(matchers)]
    threads.append(start(insert_and_evict, cache, counts, counts=counts))
    threads.append(start(schedule, counts, counts=counts))
    time.sleep(SECONDS_WARM)
    print(json.dumps({"pid": os.getpid(), "alone": alone}), flush=True)
    for _ in sys.stdin:
        print(counts.as_json(), flush=True)
    counts.stop.set()
    for thread in threads:
        thread.join()
    cache.check()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
