"""What one replay leaves behind: the time of each call, what each request met, garbage collection and memory."""

from __future__ import annotations

import gc
import resource
import sys
import time
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

OPERATIONS = ("match", "indices", "lock", "evict", "insert", "unlock")
"""The timed calls. ``indices``: the slots of a match, or of what others cached first. ``evict``: with its array."""

Numbers = npt.NDArray[np.int64]


class Recorder:
    """Collects during a replay. Appends to flat arrays only: it makes no object that garbage collection would walk."""

    def __init__(self, requests: int) -> None:
        self.operations = {name: array("q") for name in OPERATIONS}
        self.time_ns: Numbers = np.zeros(requests, np.int64)
        self.prompt: Numbers = np.zeros(requests, np.int64)
        self.hit: Numbers = np.full(requests, -1, np.int64)
        self.evicted: Numbers = np.zeros(requests, np.int64)
        self.digest: Numbers = np.zeros(requests, np.int64)


@dataclass
class Measurement:
    """One implementation's replay, as its process hands it over.

    ``operations``: ns of each call. For each request: ``time_ns`` in the cache, ``prompt`` and ``hit`` tokens (hit −1:
    it did not fit), ``evicted`` tokens for its sake, ``digest`` of everything that the cache answered. ``preempted``:
    how often the system gave the core to others, which shows in the tails.
    """

    implementation: str
    operations: dict[str, Numbers]
    time_ns: Numbers
    prompt: Numbers
    hit: Numbers
    evicted: Numbers
    digest: Numbers
    wall_s: float
    preempted: int
    gc_pauses_ns: Numbers
    rss_before: int
    rss_peak: int
    cached_tokens: int
    stats: dict[str, int]


class CollectorPauses:
    """While entered: how long each run of Python's garbage collector took.

    What lives already is frozen out of it, so that the pauses are those of the replay and its cache.
    """

    def __init__(self) -> None:
        self.pauses_ns = array("q")
        self._began = 0

    def __enter__(self) -> CollectorPauses:
        gc.collect()
        gc.freeze()
        gc.callbacks.append(self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        gc.callbacks.remove(self._note)
        gc.unfreeze()

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._began = time.perf_counter_ns()
        else:
            self.pauses_ns.append(time.perf_counter_ns() - self._began)


def preemptions() -> int:
    """How often this process lost its core against its will, so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def resident_bytes() -> tuple[int, int]:
    """The resident memory of this process, now and at its peak.

    From /proc where there is one: Linux hands ``ru_maxrss`` on from parent to child. Elsewhere both are ``ru_maxrss``.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        if "VmRSS" in lines and "VmHWM" in lines:
            return int(lines["VmRSS"].split()[0]) * 1024, int(lines["VmHWM"].split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak *= 1 if sys.platform == "darwin" else 1024
    return peak, peak
