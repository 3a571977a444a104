"""The metrics by name: what each means, and its value for each cache."""

from __future__ import annotations

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


def families(caches: Mapping[str, PrefixCache]) -> Iterator[Family]:
    """Every metric of every cache, labelled ``cache="name"``. O(caches).

    Counters begin anew with ``reset()``, as Prometheus expects of a restart. ``triradix_hit_ratio`` is there once there
    was something to look for, ``triradix_operation_seconds`` for caches made by `timed`.
    """
    known = dict(caches)
    stats = {name: cache.stats() for name, cache in known.items()}
    for metric, kind, text, stat in COUNTED:
        yield Family(metric, kind, text, [Sample("", {"cache": name}, counts[stat]) for name, counts in stats.items()])
    for metric, text, size in SIZES:
        yield Family(metric, "gauge", text, [Sample("", {"cache": name}, size(cache)) for name, cache in known.items()])
    ratios = [
        Sample("", {"cache": name}, counts["hit_tokens"] / counts["lookup_tokens"])
        for name, counts in stats.items()
        if counts["lookup_tokens"]
    ]
    if ratios:
        yield Family("triradix_hit_ratio", "gauge", "Tokens found of those looked for, since the start.", ratios)
    times = [sample for name, cache in known.items() for sample in _times(name, histograms(cache))]
    if times:
        yield Family("triradix_operation_seconds", "histogram", "What the operations of a cache take.", times)


def _times(name: str, found: Mapping[str, Histogram]) -> Iterator[Sample]:
    for operation, histogram in found.items():
        labels = {"cache": name, "operation": operation}
        for bound, count in histogram.cumulative():
            yield Sample("_bucket", {**labels, "le": bound}, count)
        yield Sample("_sum", labels, histogram.seconds)
        yield Sample("_count", labels, histogram.count)
