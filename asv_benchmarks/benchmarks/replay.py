"""A whole trace, as an engine drives it: match, lock, evict, insert, unlock; see `triradix.replay`."""

import os
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from .commit import create, needs_module
from .workload import IMPLEMENTATIONS

REQUESTS = 600
TRACE = "TRIRADIX_BENCH_TRACE"
"""The environment variable that names a trace file (Mooncake's JSON lines, or ``token_ids``; gzip too)."""


class TraceReplay:
    """Time in the cache alone, the mean of all requests: chats, agents, shared prompts and RAG, or your own trace.

    Each of five replays makes the same calls, so the least time of each request counts: what other programs took is
    seldom in all five. Python's garbage collector is on. The built-in workload has 600 requests over 2^18 slots, a
    trace all of its requests over 2^22.
    """

    version = "1"
    params = (IMPLEMENTATIONS, ("built-in workload", "trace file"))
    param_names = ("implementation", "requests")
    unit = "seconds"
    timeout = 600.0

    def setup_cache(self) -> dict[str, Any]:
        """The requests, made or read once for all implementations. A trace that is named and unusable is an error."""
        try:
            needs_module("triradix.replay.worker")
        except NotImplementedError:
            return {}
        from triradix.replay.traces import read_trace
        from triradix.replay.workloads import make_workload

        traces = {"built-in workload": (make_workload("mixed", REQUESTS, seed=0), 2**18)}
        if path := os.environ.get(TRACE):
            traces["trace file"] = (read_trace(Path(path)), 2**22)
        return traces

    def setup(self, traces: dict[str, Any], implementation: str, requests: str) -> None:
        create(implementation)
        if not traces:
            raise NotImplementedError("this commit has no replay yet")
        if requests not in traces:
            raise NotImplementedError(f"set {TRACE} to the path of a trace to have it replayed")

    def track_time_of_one_request(self, traces: dict[str, Any], implementation: str, requests: str) -> float:
        from triradix.replay.worker import Job, Settings, replay

        trace, capacity = traces[requests]
        settings = Settings(capacity, page_size=1, policy="lru", chunk=4096, concurrency=8, with_output=True)
        with redirect_stdout(StringIO()):
            runs = [replay(Job(implementation, trace, settings)).time_ns for _ in range(5)]
        return float(np.minimum.reduce(runs).mean()) / 1e9
