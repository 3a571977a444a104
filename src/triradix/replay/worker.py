"""One implementation's replay in a process of its own, so that its memory and its garbage collection are its own.

`main`, with JOB and RESULT: reads a pickled `Job`, writes a pickled `Measurement`, and prints the number of requests so
far, one line each time. Both files are the runner's own, in a private folder.
"""

from __future__ import annotations

import os
import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

import triradix
from triradix.processes import end_with_parent
from triradix.replay.engine import Engine
from triradix.replay.pool import SlotPool
from triradix.replay.recorder import CollectorPauses, Measurement, Recorder, preemptions, resident_bytes
from triradix.replay.requests import Trace


@dataclass(frozen=True)
class Settings:
    """What is equal for all implementations of a run. ``capacity`` None: without bound."""

    capacity: int | None
    page_size: int
    policy: str
    chunk: int
    concurrency: int
    with_output: bool


@dataclass(frozen=True)
class Job:
    implementation: str
    trace: Trace
    settings: Settings


def replay(job: Job, report_every: int = 50, to: TextIO | None = None) -> Measurement:
    """Run the trace through a new cache; RuntimeError if a slot leaked or was held twice.

    ``to``: who is told how many requests are done (stdout).
    """
    _warm_up(job)
    settings, requests = job.settings, job.trace.requests
    cache = triradix.create(job.implementation, page_size=settings.page_size, eviction_policy=settings.policy)
    pool = SlotPool(settings.capacity, settings.page_size)
    recorder = Recorder(len(requests))
    engine = Engine(
        cache,
        pool,
        recorder,
        chunk=settings.chunk,
        concurrency=settings.concurrency,
        with_output=settings.with_output,
    )

    def progress(done: int) -> None:
        if done % report_every == 0 or done == len(requests):
            print(done, file=to, flush=True)

    with CollectorPauses() as collector:
        rss_before, _ = resident_bytes()
        preempted = preemptions()
        began = time.perf_counter()
        engine.run(requests, progress)
        wall = time.perf_counter() - began
        preempted = preemptions() - preempted
        _, rss_peak = resident_bytes()
    if cache.protected_size():
        raise RuntimeError(f"all requests are done, but {cache.protected_size()} tokens are still locked")
    pool.check_only_holder(cache.all_indices())
    return Measurement(
        job.implementation,
        {name: np.array(times, np.int64) for name, times in recorder.operations.items()},
        recorder.time_ns,
        recorder.prompt,
        recorder.hit,
        recorder.evicted,
        recorder.digest,
        wall,
        preempted,
        np.array(collector.pauses_ns, np.int64),
        rss_before,
        rss_peak,
        cache.total_size(),
        dict(cache.stats()),
    )


def _warm_up(job: Job) -> None:
    """A few calls on another cache: imports and first-time set-up are no part of any operation."""
    cache = triradix.create(job.implementation, page_size=1, eviction_policy=job.settings.policy)
    tokens = np.arange(64, dtype=np.uint32)
    node = cache.insert(tokens, np.arange(64)).node
    cache.inc_lock_ref(node)
    cache.dec_lock_ref(cache.match_prefix(tokens).node)
    cache.path_indices(node)
    cache.evict(64)


def main(arguments: list[str]) -> None:
    end_with_parent()
    # What others print goes to stderr; what somebody has printed before may lack the end of its line.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    told.write("\n")
    job_path, result_path = map(Path, arguments)
    job: Job = pickle.loads(job_path.read_bytes())
    result_path.write_bytes(pickle.dumps(replay(job, to=told)))
