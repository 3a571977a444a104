"""Recordings to make reports of: small, made up, and written as `profiles record` writes them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from triradix import IMPLEMENTATIONS

sys.path.insert(0, str(Path(__file__).parent.parent))  # profiles is no installed package

from profiles import folded, record, sampler
from profiles.load import ROLES

START = ("Thread._bootstrap (threading.py:1002)", "run (profiles/load.py:97)")
MATCH, WRITE, SCHEDULE = (f"{name} (profiles/load.py:{line})" for name, line in zip(ROLES, (64, 80, 95), strict=True))
WALKS = {
    "reference": "walk (reference/walk.py:20)",
    "cython": "walk (cython_impl/walk.pyx:31)",
    "rust": "triradix::core::walk (rust_impl/src/core/walk.rs:44)",
}
GIL_WAIT = ("pthread_cond_timedwait (libc.so.6)", "[no name] (libc.so.6)")
LOCK_WAIT = ("RwLock<T>::write_contended (rustlib/rwlock.rs:9)", "syscall (libc.so.6)")


def stacks(implementation: str, kind: str, matchers: int) -> Counter[folded.Stack]:
    base = START
    found = Counter(
        {
            (*base, MATCH, WALKS[implementation]): 30 * matchers,
            (*base, WRITE): 10,
            (*base, SCHEDULE): 50,
        }
    )
    if kind == "idle":
        found[(*base, MATCH, *GIL_WAIT)] = 60
        found[(*base, MATCH, *LOCK_WAIT)] = 10
    return found


def samples(implementation: str, kind: str, matchers: int, intervals: int = 200) -> sampler.Samples:
    found = stacks(implementation, kind, matchers)
    return sampler.Samples(kind, (*sampler.KINDS[kind], "--rate", "50"), intervals, 0, found, {"profiles": []})


def run(folder: Path, implementation: str, matchers: int) -> dict[str, Any]:
    at = IMPLEMENTATIONS.index(implementation)
    processor = {role: {"on": 0.4, "queued": 0.1, "waiting": 0.5} for role in ROLES.values()}
    window = {
        "matches": 1e5 * (1 + at),
        "inserts": 100.0,
        "progress": 5e6,
        "p99": 1e-4 / (1 + at),
        "processor": processor,
    }
    window["matches"] *= matchers ** (0.5 if implementation != "cython" else -0.5)
    recordings = {}
    for kind in sampler.KINDS:
        one = samples(implementation, kind, matchers)
        recordings[kind] = {"name": f"{implementation}-0123456789ab-{matchers}-{kind}", **record.figures(one)}
        recordings[kind]["window"] = window
        record.keep(folder / recordings[kind]["name"], f"{implementation} {kind}", one, recordings[kind])
    return {
        "implementation": implementation,
        "matchers": matchers,
        "scheduler_alone": 1e7,
        "control": window,
        "recordings": recordings,
    }


def make_profiles(folder: Path) -> dict[str, Any]:
    """The summary; it, the recordings and the collector's pauses stand in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = {
        "schema": record.SCHEMA,
        "created": "2026-01-02T03:04:05+00:00",
        "commit": "0123456789ab",
        "machine": {"cpu": "A CPU", "cores": 2, "python": "CPython 3.11"},
        "load": {"batch": 64, "rate": 50, "seconds": 4},
        "runs": [run(folder, name, matchers) for name in IMPLEMENTATIONS for matchers in (1, 4)],
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    pauses = [
        {
            "implementation": name,
            "nodes": 1000,
            "tracked": 5000,
            "served": [[1e-5, 2e-5], [1e-4], []],
            "forced": [[1e-5], [1e-4], [2e-2]],
        }
        for name in IMPLEMENTATIONS
    ]
    (folder / "gc.json").write_text(json.dumps(pauses))
    return summary
