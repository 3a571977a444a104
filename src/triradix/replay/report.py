"""From measurements to one plain mapping: what the terminal, the JSON file and the page show."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import numpy as np

import triradix
from triradix.provenance import commit, machine
from triradix.replay.recorder import OPERATIONS, Measurement, Numbers
from triradix.replay.requests import Segments, Trace
from triradix.replay.worker import Settings

Report = dict[str, Any]

WINDOWS = 120
"""Points of a curve over the trace, at most; each stands for 20 requests or more."""

_LEVELS = np.unique(np.concatenate((np.linspace(0, 0.99, 100), 1 - np.logspace(-2, -4, 21), [1.0])))


def make_report(trace: Trace, settings: Settings, measured: list[Measurement], command: str) -> Report:
    """All facts of a run, JSON-able. Times are in µs unless the name says otherwise, memory in bytes."""
    first = measured[0]
    served = first.hit >= 0
    return {
        "triradix": triradix.__version__,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": command,
        "commit": commit(),
        "machine": machine(),
        "trace": {
            "name": trace.name,
            "requests": len(first.hit),
            "prompt_tokens": int(first.prompt.sum()),
            "block_size": trace.block_size,
        },
        "settings": {
            "capacity": settings.capacity,
            "page_size": settings.page_size,
            "policy": settings.policy,
            "chunk": settings.chunk,
            "concurrency": settings.concurrency,
            "output_tokens": settings.with_output,
            "keys": "NumPy uint32, contiguous",
        },
        "outcome": {
            "hit_rate_tokens": token_hit_rate(first.prompt, first.hit),
            "hit_rate_blocks": trace.block_size and block_hit_rate(first.prompt, first.hit, trace.block_size),
            "ideal": ideal_hit_rates(trace),
            "hit_tokens": int(first.hit[served].sum()),
            "evicted_tokens": int(first.evicted.sum()),
            "did_not_fit": int((~served).sum()),
            "cached_tokens": first.cached_tokens,
        },
        "implementations": {each.implementation: _costs(each) for each in measured},
        "curves": {
            "request": _window_ends(len(first.hit)).tolist(),
            "hit_rate": _over_windows(first, lambda part: token_hit_rate(first.prompt[part], first.hit[part])),
            "hit_rate_so_far": (
                np.cumsum(np.where(served, first.hit, 0)) / np.maximum(1, np.cumsum(np.where(served, first.prompt, 0)))
            )[_window_ends(len(first.hit)) - 1].tolist(),
            "cdf_levels": _LEVELS.tolist(),
        },
    }


def write_json(report: Report) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


def ideal_hit_rates(trace: Trace) -> dict[str, float] | None:
    """What a cache without bound hits if requests come one by one, from the ids of a block trace alone."""
    if trace.block_size is None:
        return None
    trie: dict[tuple[int, int], int] = {}  # (parent, id) → node
    blocks = hit_blocks = tokens = hit_tokens = 0
    for request in trace.requests:
        assert isinstance(request.prompt, Segments)
        ids, lengths = request.prompt.ids.tolist(), request.prompt.lengths
        node = known = 0
        for block in ids:
            before = len(trie)
            node = trie.setdefault((node, block), before + 1)
            known += len(trie) == before
        blocks, hit_blocks = blocks + len(ids), hit_blocks + known
        tokens, hit_tokens = tokens + int(lengths.sum()), hit_tokens + int(lengths[:known].sum())
    return {"tokens": hit_tokens / tokens, "blocks": hit_blocks / blocks}


def token_hit_rate(prompt: Numbers, hit: Numbers) -> float:
    """Of the prompts' tokens; requests that did not fit (hit −1) are left out."""
    served = hit >= 0
    return _ratio(hit[served].sum(), prompt[served].sum())


def block_hit_rate(prompt: Numbers, hit: Numbers, block_size: int) -> float:
    """Of the prompts' blocks, those that were hit whole; the last, partial block of a prompt counts as one."""
    served = hit >= 0
    prompt, hit = prompt[served], hit[served]
    hits = hit // block_size + ((hit == prompt) & (prompt % block_size > 0))
    return _ratio(hits.sum(), (-(-prompt // block_size)).sum())


def _costs(measured: Measurement) -> dict[str, Any]:
    served = measured.time_ns[measured.hit >= 0]
    return {
        "operations": {name: _times(measured.operations[name]) for name in OPERATIONS},
        "time_in_cache_per_request": _times(served),
        "time_in_cache_s": float(measured.time_ns.sum() / 1e9),
        "replay_s": measured.wall_s,
        "preempted": measured.preempted,
        "gc": {
            "pauses": len(measured.gc_pauses_ns),
            "total_ms": float(measured.gc_pauses_ns.sum() / 1e6),
            "max_ms": float(measured.gc_pauses_ns.max(initial=0) / 1e6),
        },
        "peak_rss": measured.rss_peak,
        "rss_before": measured.rss_before,
        "stats": measured.stats,
        "curves": {
            "p50": _over_windows(measured, lambda part: _quantile(measured.time_ns[part], 0.5)),
            "p99": _over_windows(measured, lambda part: _quantile(measured.time_ns[part], 0.99)),
            "cdf": {
                name: (np.quantile(times, _LEVELS) / 1000).round(3).tolist() if len(times) else None
                for name, times in measured.operations.items()
            },
        },
    }


def _times(nanoseconds: Numbers) -> dict[str, Any]:
    if not len(nanoseconds):
        return {"calls": 0, "p50": None, "p99": None, "max": None, "mean": None, "total_s": 0.0}
    p50, p99, largest = (np.quantile(nanoseconds, [0.5, 0.99, 1.0]) / 1000).tolist()
    return {
        "calls": len(nanoseconds),
        "p50": p50,
        "p99": p99,
        "max": largest,
        "mean": float(nanoseconds.mean() / 1000),
        "total_s": float(nanoseconds.sum() / 1e9),
    }


def _window_ends(requests: int) -> Numbers:
    count = max(1, min(WINDOWS, requests // 20))
    return np.arange(1, count + 1, dtype=np.int64) * requests // count


def _over_windows(measured: Measurement, value: Any) -> list[float | None]:
    """``value`` of the served requests of each window; None where there is none."""
    points: list[float | None] = []
    begin = 0
    for end in _window_ends(len(measured.hit)).tolist():
        part = begin + np.flatnonzero(measured.hit[begin:end] >= 0)
        points.append(value(part) if len(part) else None)
        begin = end
    return points


def _quantile(nanoseconds: Numbers, level: float) -> float:
    return round(float(np.quantile(nanoseconds, level)) / 1000, 3)


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else 0.0
