"""Histograms of what operations take. Off unless a cache is made by `timed`, which says what that costs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter_ns
from typing import Any, cast

from triradix.protocol import PrefixCache

OPERATIONS = (
    "match_prefix", "match_prefix_many", "peek_prefix", "peek_prefix_many", "insert", "inc_lock_ref", "dec_lock_ref",
    "evict", "evict_namespace",
)  # fmt: skip

SMALLEST, LARGEST = 7, 31
"""Buckets are powers of two in ns, from 2**7 (0.13 µs) to 2**31 (2.1 s): the bit length of a reading names its own."""

FOLDED_AT = 256
"""So many readings of an operation are kept one by one. Then they are folded into counts."""

_folding: list[int] = []
"""Threads that are about to fold readings: one that is alone in it may."""


def _forget_other_threads() -> None:
    """In the child of a fork there are none."""
    _folding[:] = [thread for thread in _folding if thread == get_ident()]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


@dataclass(frozen=True)
class Histogram:
    """Readings by bit length (``buckets[b]``: those of fewer than 2**b ns, and of no fewer than half that)."""

    buckets: list[int]
    total_ns: int

    @property
    def count(self) -> int:
        return sum(self.buckets)

    @property
    def seconds(self) -> float:
        return self.total_ns / 1e9

    def cumulative(self) -> Iterator[tuple[str, int]]:
        """(upper bound in seconds, as Prometheus writes it; readings up to it)."""
        for bits in range(SMALLEST, LARGEST + 1):
            yield repr(2**bits / 1e9), sum(self.buckets[: bits + 1])
        yield "+Inf", self.count


Kept = list[Histogram | int]
"""Of one operation: first all that is folded, then what single calls took, in ns."""


def timed(cache: PrefixCache) -> PrefixCache:
    """A cache that is ``cache``, and keeps a histogram of what each operation takes. ValueError if it does already,
    TypeError if it is none.

    Both may be used, and nodes of one are nodes of the other; only calls of the one returned are timed, those that
    raise too. No lock is taken: signal handlers, finalizers and forks may come at any point. A call takes some 0.36 µs
    more: two readings of the clock, a list that grows, a Python function; in this are the 16 µs that every 256th call
    takes to fold what has gathered. (Processor time, Python 3.11, AMD EPYC, where a match of 128 tokens itself takes
    0.17 in Cython and in Rust.)
    """
    if isinstance(cache, _Timed):
        raise ValueError("this cache is timed already")
    if not all(hasattr(cache, operation) for operation in OPERATIONS):
        raise TypeError(f"cache must be a cache, not {type(cache).__name__}")
    return cast(PrefixCache, _Timed(cache))


def histograms(cache: PrefixCache) -> Mapping[str, Histogram]:
    """By operation, of those called so far; empty for a cache that is not timed."""
    if not isinstance(cache, _Timed):
        return {}
    summed = {name: _summed([*kept]) for name, kept in cache.readings.items()}
    return {name: histogram for name, histogram in summed.items() if histogram.count}


class _Timed:
    def __init__(self, cache: PrefixCache) -> None:
        self._cache = cache
        self.readings: dict[str, Kept] = {name: [Histogram([0] * 65, 0)] for name in OPERATIONS}
        for name, kept in self.readings.items():
            setattr(self, name, _timing(getattr(cache, name), kept))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def __repr__(self) -> str:
        return f"timed({self._cache!r})"

    def __reduce__(self) -> Any:
        raise TypeError("caches can be neither copied nor pickled")


def _timing(call: Callable[..., Any], kept: Kept) -> Callable[..., Any]:
    append = kept.append

    def run(*arguments: Any, **named: Any) -> Any:
        began = perf_counter_ns()
        try:
            return call(*arguments, **named)
        finally:
            append(perf_counter_ns() - began)
            if len(kept) > FOLDED_AT:
                _fold(kept)

    return run


def _fold(kept: Kept) -> None:
    """Unless another thread is at it, or this one further out: a later call sees to it then.

    The list is the only truth. It changes in single steps, between which each reading stands in it once: whoever copies
    it, at whatever moment, has all of them.
    """
    thread = get_ident()
    with suppress(MemoryError):  # it only stays longer than need be
        try:
            _folding.append(thread)
            if len(_folding) == 1:
                # Not `list(kept)`: between its look at the length and the copy there may be a garbage collection.
                now = [*kept]
                kept[: len(now)] = [_summed(now)]
        finally:
            if thread in _folding:
                _folding.remove(thread)


def _summed(kept: Kept) -> Histogram:
    folded = cast(Histogram, kept[0])
    single = cast(list[int], kept[1:])
    buckets = folded.buckets.copy()
    for bits, count in Counter(map(int.bit_length, single)).items():
        buckets[bits] += count
    return Histogram(buckets, folded.total_ns + sum(single))
