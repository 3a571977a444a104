"""The metrics by name: what each means, and its value for each cache."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

from triradix.metrics.latencies import Histogram, histograms
from triradix.protocol import PrefixCache

Kind = Literal["counter", "gauge", "histogram"]


class Sample(NamedTuple):
    """One value. ``suffix`` follows the family's name (histograms have several)."""

    suffix: str
    labels: dict[str, str]
    value: float


class Family(NamedTuple):
    """``name`` as Prometheus shows it, with ``_total`` for counters."""

    name: str
    kind: Kind
    help: str
    samples: list[Sample]


COUNTED: tuple[tuple[str, Kind, str, str], ...] = (
    ("triradix_lookups_total", "counter", "Matches (peeks are not counted).", "lookups"),
    ("triradix_lookup_tokens_total", "counter", "Tokens of whole pages that matches looked for.", "lookup_tokens"),
    ("triradix_hit_tokens_total", "counter", "Tokens that matches found.", "hit_tokens"),
    ("triradix_inserts_total", "counter", "Inserts.", "inserts"),
    ("triradix_inserted_tokens_total", "counter", "Tokens that an insert added.", "inserted_tokens"),
    ("triradix_evicted_tokens_total", "counter", "Tokens that evictions freed.", "evicted_tokens"),
    ("triradix_cached_tokens", "gauge", "Tokens that are cached.", "total_tokens"),
    ("triradix_nodes", "gauge", "Nodes of the tree.", "nodes"),
    ("triradix_memory_bytes", "gauge", "Bytes that the tree takes, as allocated.", "memory_bytes"),
)

SIZES: tuple[tuple[str, str, Callable[[PrefixCache], int]], ...] = (
    ("triradix_evictable_tokens", "Cached tokens without a lock.", lambda cache: cache.evictable_size()),
    ("triradix_protected_tokens", "Cached tokens of locked pages.", lambda cache: cache.protected_size()),
)

_logger = logging.getLogger("triradix.metrics")


class _Answers(NamedTuple):
    """What one cache said. ``counts``: in the order of `COUNTED`; ``sizes``: in that of `SIZES`."""

    counts: list[int]
    sizes: list[int]
    hit_ratio: float | None
    times: Mapping[str, Histogram]


def families(caches: Mapping[str, PrefixCache]) -> Iterator[Family]:
    """Every metric of every cache, labelled ``cache="name"``. O(caches). TypeError or ValueError as `known` says.

    Counters begin anew with ``reset()``, as Prometheus expects of a restart. ``triradix_hit_ratio`` is there once there
    was something to look for, ``triradix_operation_seconds`` for caches made by `timed`. Of a cache that raises there
    is nothing but ``triradix_scrape_success`` 0; Python's logging is told why.
    """
    answers = {name: _ask(name, cache) for name, cache in known(caches).items()}
    heard = {name: answer for name, answer in answers.items() if answer is not None}
    for number, (metric, kind, text, _) in enumerate(COUNTED):
        yield Family(metric, kind, text, [_sample(name, answer.counts[number]) for name, answer in heard.items()])
    for number, (metric, text, _) in enumerate(SIZES):
        yield Family(metric, "gauge", text, [_sample(name, answer.sizes[number]) for name, answer in heard.items()])
    ratios = [_sample(name, answer.hit_ratio) for name, answer in heard.items() if answer.hit_ratio is not None]
    if ratios:
        yield Family("triradix_hit_ratio", "gauge", "Tokens found of those looked for, since the start.", ratios)
    times = [sample for name, answer in heard.items() for sample in _times(name, answer.times)]
    if times:
        yield Family("triradix_operation_seconds", "histogram", "What the operations of a cache take.", times)
    successes = [_sample(name, int(answer is not None)) for name, answer in answers.items()]
    yield Family("triradix_scrape_success", "gauge", "Whether the cache could be asked.", successes)


def known(caches: Mapping[str, PrefixCache]) -> dict[str, PrefixCache]:
    """The caches of now. TypeError for what is no mapping, no str or no cache, ValueError for a name without UTF-8."""
    if not isinstance(caches, Mapping):
        raise TypeError(f"caches must be a mapping of names to caches, not {type(caches).__name__}")
    found = dict(caches)
    for name, cache in found.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a cache must be a str, not {type(name).__name__}: {name!r}")
        try:
            str.encode(name)
        except UnicodeEncodeError:
            raise ValueError(f"the name {name!r} of a cache has a lone surrogate, which no scrape can say") from None
        if not all(hasattr(cache, method) for method in ("stats", "evictable_size", "protected_size")):
            raise TypeError(f"caches[{name!r}] must be a cache, not {type(cache).__name__}")
    return found


def _ask(name: str, cache: PrefixCache) -> _Answers | None:
    try:
        stats = cache.stats()
        found, looked_for = int(stats["hit_tokens"]), int(stats["lookup_tokens"])
        return _Answers(
            [int(stats[stat]) for _, _, _, stat in COUNTED],
            [int(size(cache)) for _, _, size in SIZES],
            found / looked_for if looked_for else None,
            histograms(cache),
        )
    except Exception as error:
        _logger.error("the cache %r cannot be asked: %s: %s", name, type(error).__name__, error)
        return None


def _sample(cache: str, value: float) -> Sample:
    return Sample("", {"cache": cache}, value)


def _times(name: str, found: Mapping[str, Histogram]) -> Iterator[Sample]:
    for operation, histogram in found.items():
        labels = {"cache": name, "operation": operation}
        for bound, count in histogram.cumulative():
            yield Sample("_bucket", {**labels, "le": bound}, count)
        yield Sample("_sum", labels, histogram.seconds)
        yield Sample("_count", labels, histogram.count)
