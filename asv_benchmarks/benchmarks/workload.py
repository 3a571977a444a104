"""The keys and the filled caches that the benchmarks use. Everything comes from fixed seeds."""

import os
import random
from array import array
from collections.abc import Iterable
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

import triradix

from .commit import create

# Written out, since asv counts parameters by their place: a commit with fewer would otherwise shift the others.
IMPLEMENTATIONS = ("reference", "cython", "rust")
POLICIES = ("lru", "lfu", "fifo", "mru", "filo", "priority", "slru")
VOCABULARY = 128_000

# The large ones stand here, where the tests make them small.
COLD_TOKENS = 1 << 24
RUNS = 1 << 16
NODES = 200_000

Rows = npt.NDArray[np.int64]


def rows(seed: int, how_many: int, length: int) -> Rows:
    """Random tokens, shape ``(how_many, length)``, as 64-bit integers. A row is a key."""
    return np.random.default_rng(seed).integers(VOCABULARY, size=(how_many, length), dtype=np.int64)


def as_array(row: Rows) -> "array[int]":
    """The same tokens in an ``array('q')``: what an engine in Python holds."""
    key = array("q")
    key.frombytes(row.tobytes())
    return key


def tokens(seed: int, length: int) -> "array[int]":
    """A key of ``length`` random tokens."""
    return as_array(rows(seed, 1, length)[0])


def slots(first: int, length: int) -> "array[int]":
    """``length`` slots in a row."""
    return array("q", range(first, first + length))


def prompts(prefix: int, end: int, how_many: int) -> "list[array[int]]":
    """Keys that share a system prompt of ``prefix`` tokens and end in ``end`` tokens of their own."""
    shared = tokens(0, prefix)
    return [shared + as_array(row) for row in rows(1, how_many, end)]


def nested(seed: int, step: int, how_many: int) -> "list[array[int]]":
    """The prefixes of one sequence of ``step``, 2 · ``step``, … tokens."""
    whole = tokens(seed, step * how_many)
    return [whole[: step * (number + 1)] for number in range(how_many)]


def filled(implementation: str, keys: Iterable[Any], **options: Any) -> triradix.PrefixCache:
    """A cache that holds ``keys``, each with slots of its own."""
    cache = create(implementation, **options)
    plant(cache, keys)
    return cache


def plant(cache: triradix.PrefixCache, keys: Iterable[Any]) -> None:
    """Insert ``keys``, with slots that count on from 0."""
    first = 0
    for key in keys:
        cache.insert(key, slots(first, len(key)))
        first += len(key)


def groups(first_seed: int, leaves: int, prefix: int, end: int, fan_out: int = 99) -> Iterable[Rows]:
    """``leaves`` keys of ``prefix + end`` tokens, an array for each group of up to ``fan_out`` that share it."""
    for seed in count(first_seed):
        if leaves <= 0:
            return
        size = min(fan_out, leaves)
        keys = rows(seed, size, prefix + end)
        keys[:, :prefix] = keys[0, :prefix]
        yield keys
        leaves -= size


@cache
def large(implementation: str) -> triradix.PrefixCache:
    """65,536 runs of 256 tokens: more than a processor's cache holds. Made once a process."""
    return filled(implementation, rows(0, RUNS, 256))


@cache
def keys_of_large() -> "list[array[int]]":
    """10,000 of those runs, in an order of their own."""
    everything = rows(0, RUNS, 256)
    return [as_array(everything[number]) for number in random.Random(0).sample(range(RUNS), min(RUNS, 10_000))]


_scratch: list[Rows] = []


def flush_caches() -> None:
    """Fill the processor's caches with something else: 128 MiB, or twice the last cache where that is more."""
    if not _scratch:
        name = "SC_LEVEL3_CACHE_SIZE"
        last = os.sysconf(name) if name in os.sysconf_names else 0
        _scratch.append(np.zeros(max(128 << 20, 2 * last) // 8, np.int64))
    _scratch[0] += 1
