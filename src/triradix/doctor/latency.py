"""What a match of 128 cached tokens takes here, beside what is to be expected of this machine."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from time import perf_counter_ns
from typing import Any

import numpy as np

from triradix.doctor.self_test import Create

TOKENS = 128
BLOCK = 32

MOST_CALLS = {"reference": 300, "cython": 25, "rust": 25}
"""So many empty Python calls may a match take. A release build takes about a third of that, a debug build more."""


@dataclass(frozen=True)
class Latency:
    """ns a call: of matches (median, and what 99 % of the blocks of calls stayed under), of an empty Python call."""

    p50: float
    p99: float
    empty_call: float


def measure(create: Create, seconds: float) -> Latency:
    """Matches for so long, in turns with empty calls. A block of 32 calls counts as one reading."""
    key = array("q", range(1000, 1000 + TOKENS))
    cache = create()
    cache.insert(key, array("q", range(TOKENS)))
    matches, nothings = array("d"), array("d")
    until = perf_counter_ns() + int(seconds * 1e9)
    while not matches or perf_counter_ns() < until:
        matches.append(_block(cache.match_prefix, key))
        nothings.append(_block(_nothing, key))
    p50, p99 = np.percentile(matches, (50, 99))
    return Latency(float(p50), float(p99), float(np.median(nothings)))


def most(name: str, empty_call: float) -> float:
    """What a match may take on a machine where an empty call takes ``empty_call``; both in ns."""
    return MOST_CALLS[name] * empty_call


def _nothing(key: Any) -> None:
    return None


def _block(call: Callable[[Any], object], argument: Any) -> float:
    began = perf_counter_ns()
    for _ in repeat(None, BLOCK):
        call(argument)
    return (perf_counter_ns() - began) / BLOCK
