"""From the steps that the probe saw to figures of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np


def figures(steps: Sequence[dict[str, Any]], requests: int) -> dict[str, Any]:
    """ValueError if the probe saw nothing.

    ``share``: of the scheduler's busy processor time. ``share without model``: of what is left of it when the model's
    part is taken away, which on a GPU is not the CPU's.
    """
    if not steps or not any(step["calls"] for step in steps):
        raise ValueError("the probe saw no step of the engine: is its plugin in use?")
    calls: dict[str, list[int]] = defaultdict(list)
    for step in steps:
        for name, ns in step["calls"]:
            calls[name].append(ns)
    cache = sum(map(sum, calls.values())) / 1e9
    busy, model = (sum(step.get(name, 0) for step in steps) / 1e9 for name in ("busy", "forward"))
    each_step = np.array([sum(ns for _, ns in step["calls"]) for step in steps])
    return {
        "steps": len(steps),
        "busy s": busy,
        "wall s": sum(step["wall"] for step in steps) / 1e9,
        "model s": model,
        "cache s": cache,
        "share": cache / busy,
        "share without model": cache / (busy - model),
        "cache µs per request": cache / requests * 1e6,
        "cache µs per step, p99": float(np.quantile(each_step, 0.99)) / 1000,
        "calls": {name: call_figures(calls[name]) for name in sorted(calls, key=lambda name: -sum(calls[name]))},
    }


def call_figures(nanoseconds: Sequence[int]) -> dict[str, float]:
    p50, p99 = np.quantile(nanoseconds, (0.5, 0.99)) / 1000
    return {
        "count": len(nanoseconds),
        "mean µs": float(np.mean(nanoseconds)) / 1000,
        "p50 µs": float(p50),
        "p99 µs": float(p99),
        "total µs": sum(nanoseconds) / 1000,
    }
