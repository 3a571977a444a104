"""How long Python's garbage collector stops everything, by generation, while a tree is full.

    python -m profiles.pauses IMPLEMENTATION NODES

makes a cache of so many nodes, serves requests from it, and prints the pauses as JSON. A collector walks the objects of
a generation, and those of the generations below; what a cache leaves to it is walked again and again.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import triradix
from profiles.arguments import at_least_one
from profiles.folded import ROOT
from profiles.rows import time_text
from profiles.sampler import CannotRecord
from triradix.files import put

FILE = "gc.json"
NODES = 200_000
LENGTH = 16
REQUESTS = 60_000
HELD = 2_000
"""Results and nodes that an engine keeps of its running requests."""
BETWEEN = 500
"""Requests before each collection that is asked for."""
FORCED = 5
COLUMNS = ("generation", "collections", "median pause", "longest pause", "all pauses", "asked for")
GENERATIONS = range(3)


class Pauses:
    """Notes the collections while it is entered: generation → seconds of each."""

    def __init__(self) -> None:
        self.seconds: dict[int, list[float]] = {generation: [] for generation in GENERATIONS}
        self._began = 0.0

    def __enter__(self) -> Pauses:
        gc.callbacks.append(self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        gc.callbacks.remove(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self.seconds[info["generation"]].append(time.perf_counter() - self._began)


def keys(nodes: int) -> Iterator[array[int]]:
    """One key for each node: their first tokens differ, so none shares a run with another."""
    for number in range(nodes):
        yield array("q", range(number * LENGTH, (number + 1) * LENGTH))


def measure(implementation: str, nodes: int) -> dict[str, Any]:
    """The pauses while requests are served from a full cache, and those of collections that are asked for then."""
    cache = triradix.create(implementation)
    slots = array("q", range(LENGTH))
    for key in keys(nodes):
        cache.insert(key, slots)
    gc.collect()
    tracked = len(gc.get_objects())
    with Pauses() as served:
        serve(cache, nodes, slots, REQUESTS)
    forced: dict[int, list[float]] = {generation: [] for generation in GENERATIONS}
    for _ in range(FORCED):
        for generation in GENERATIONS:
            # Off until the last moment: else a collection that is due empties the generation just before.
            gc.disable()
            running = serve(cache, nodes, slots, BETWEEN)
            with Pauses() as asked:
                gc.collect(generation)
            gc.enable()
            del running
            forced[generation] += asked.seconds[generation]
    return {
        "implementation": implementation,
        "nodes": nodes,
        "tracked": tracked,
        "served": list(served.seconds.values()),
        "forced": list(forced.values()),
    }


def serve(cache: triradix.PrefixCache, nodes: int, slots: array[int], requests: int) -> deque[dict[str, Any]]:
    """Each request is matched, inserted and evicted for; what a scheduler holds of the last ones is returned."""
    running: deque[dict[str, Any]] = deque(maxlen=HELD)
    for number in range(requests):
        start = number * 7919 % nodes * LENGTH
        key = array("q", range(start, start + LENGTH))
        fresh = array("q", range((nodes + number) * LENGTH, (nodes + number + 1) * LENGTH))
        running.append({"match": cache.match_prefix(key), "insert": cache.insert(fresh, slots), "stats": [number]})
        cache.evict(LENGTH)
    return running


def measure_all(implementations: Sequence[str], nodes: int, python: str) -> list[dict[str, Any]]:
    """Each in a process of its own, so that its garbage is its own."""
    found = []
    for implementation in implementations:
        command = [python, "-m", "profiles.pauses", implementation, str(nodes)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise CannotRecord(
                f"the pauses of {implementation} cannot be measured: {said[-1] if said else 'no reason'}"
            )
        found.append(json.loads(done.stdout))
    return found


def explained(measured: Sequence[dict[str, Any]]) -> str:
    tracked = ", ".join(f"{one['implementation']} {one['tracked']:,}" for one in measured)
    return (
        f"Pauses while {REQUESTS:,} requests are served from a cache of {measured[0]['nodes']:,} nodes, by generation, "
        f"as gc.callbacks saw them, and the median of {FORCED} collections asked for by hand then. Objects that the "
        f"whole process has for the collector: {tracked}."
    )


def lines(measured: Sequence[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """For each implementation and generation, the cells below `COLUMNS`."""
    found = []
    for one in measured:
        for generation, (served, forced) in enumerate(zip(one["served"], one["forced"], strict=True)):
            times = (
                [time_text(value) for value in (median(served), max(served), sum(served))] if served else ["none"] * 3
            )
            found.append(
                (one["implementation"], [str(generation), f"{len(served):,}", *times, time_text(median(forced))])
            )
    return found


def write(measured: Sequence[dict[str, Any]], folder: Path) -> None:
    put(folder / FILE, json.dumps(measured, indent=2) + "\n")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=at_least_one, default=NODES, help=f"of the full tree (default {NODES:,})")


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
