"""The keys and the filled caches that the benchmarks use. Everything comes from fixed seeds."""

import random
from array import array
from itertools import count

import triradix

IMPLEMENTATIONS = ("reference", "cython", "rust")
VOCABULARY = 128_000


def tokens(seed: int, length: int) -> "array[int]":
    """A key of ``length`` random tokens: 64-bit integers in a buffer, as an engine holds them."""
    return array("q", random.Random(seed).choices(range(VOCABULARY), k=length))


def slots(first: int, length: int) -> "array[int]":
    """``length`` slots in a row."""
    return array("q", range(first, first + length))


def prompts(prefix: int, end: int, how_many: int) -> "list[array[int]]":
    """Keys that share a system prompt of ``prefix`` tokens and end in ``end`` tokens of their own."""
    shared = tokens(0, prefix)
    return [shared + tokens(1 + number, end) for number in range(how_many)]


def filled(implementation: str, keys: "list[array[int]]") -> triradix.PrefixCache:
    """A cache that holds ``keys``."""
    cache = triradix.create(implementation)
    first = 0
    for key in keys:
        cache.insert(key, slots(first, len(key)))
        first += len(key)
    return cache


def groups(leaves: int) -> "list[array[int]]":
    """``leaves`` keys in groups: a prefix of 512 tokens for each group, 99 ends of 128 tokens below it."""
    seeds = count()
    keys: list[array[int]] = []
    while len(keys) < leaves:
        prefix = tokens(next(seeds), 512)
        keys += [prefix + tokens(next(seeds), 128) for _ in range(min(99, leaves - len(keys)))]
    return keys
