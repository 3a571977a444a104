"""Metrics: the numbers of `stats()` by name, as text and through prometheus_client; and what operations took."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from implementations import Implementation
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import triradix
from triradix.metrics import prometheus_text, timed
from triradix.metrics.collector import CacheCollector
from triradix.metrics.exposition import CONTENT_TYPE
from triradix.metrics.latencies import histograms


def parsed(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """By the name and the labels of a sample."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def used(implementation: Implementation, **config: Any) -> Any:
    cache = implementation.create(**config)
    cache.insert(list(range(100)), list(range(100)))
    node = cache.match_prefix(list(range(60))).node
    cache.inc_lock_ref(node)
    cache.match_prefix([7, 8, 9, 10])
    cache.evict(10)
    return cache


def test_what_is_counted(implementation: Implementation) -> None:
    cache = used(implementation)
    values = {name: value for (name, _), value in parsed(prometheus_text({"main": cache})).items()}
    assert values.pop("triradix_nodes") == cache.stats()["nodes"]
    assert values.pop("triradix_memory_bytes") == cache.stats()["memory_bytes"]
    assert values == {
        "triradix_lookups_total": 2,
        "triradix_lookup_tokens_total": 64,
        "triradix_hit_tokens_total": 60,
        "triradix_inserts_total": 1,
        "triradix_inserted_tokens_total": 100,
        "triradix_evicted_tokens_total": 10,
        "triradix_cached_tokens": 90,
        "triradix_evictable_tokens": 30,
        "triradix_protected_tokens": 60,
        "triradix_hit_ratio": 60 / 64,
    }


def test_the_client_shows_the_same(implementation: Implementation) -> None:
    caches = {"a": used(implementation), 'b"\\\n': timed(used(implementation, page_size=2))}
    caches['b"\\\n'].match_prefix([1, 2, 3])
    registry = CollectorRegistry()
    registry.register(CacheCollector(caches))
    text = prometheus_text(caches)
    assert parsed(generate_latest(registry).decode()) == parsed(text)
    assert {dict(labels)["cache"] for _, labels in parsed(text)} == set(caches)
    kinds = {family.name: (family.type, family.documentation) for family in text_string_to_metric_families(text)}
    again = text_string_to_metric_families(generate_latest(registry).decode())
    assert {family.name: (family.type, family.documentation) for family in again} == kinds
    assert kinds["triradix_operation_seconds"][0] == "histogram"
    assert "version=0.0.4" in CONTENT_TYPE


def test_caches_come_and_go(implementation: Implementation) -> None:
    caches: dict[str, Any] = {}
    registry = CollectorRegistry()
    registry.register(CacheCollector(caches))
    assert parsed(generate_latest(registry).decode()) == {}
    caches["late"] = implementation.create()
    values = parsed(generate_latest(registry).decode())
    assert values["triradix_lookups_total", (("cache", "late"),)] == 0
    assert not any(name == "triradix_hit_ratio" for name, _ in values)
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(CacheCollector(caches))


def test_a_timed_cache_is_the_same_cache(implementation: Implementation) -> None:
    plain = implementation.create(page_size=2)
    cache = timed(plain)
    node = cache.insert([1, 2, 3, 4], [5, 6, 7, 8]).node
    assert plain.match_prefix([1, 2, 3, 4]).node == node
    assert cache.match_prefix([1, 2, 9], start=None).indices.tolist() == [5, 6]
    assert (cache.page_size, cache.total_size(), cache.inc_lock_ref(node)) == (2, 4, 4)
    assert cache.peek_prefix_many([[1, 2]]).tolist() == [2]
    cache.check()
    with pytest.raises(ValueError, match="timed already"):
        timed(cache)
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        pickle.dumps(cache)
    assert repr(cache) == f"timed({plain!r})"


def test_what_operations_take(implementation: Implementation) -> None:
    plain = implementation.create()
    cache = timed(plain)
    assert histograms(plain) == histograms(cache) == {}
    for _ in range(20):
        cache.match_prefix([1, 2, 3])
    plain.match_prefix([1, 2, 3])
    with pytest.raises(ValueError):
        cache.evict(-1)
    found = histograms(cache)
    assert {name: histogram.count for name, histogram in found.items()} == {"match_prefix": 20, "evict": 1}
    values = parsed(prometheus_text({"x": cache}))
    labels = (("cache", "x"), ("operation", "match_prefix"))
    assert values["triradix_operation_seconds_count", labels] == 20
    assert 0 < values["triradix_operation_seconds_sum", labels] < 60
    buckets = [
        (float(dict(labels)["le"]), value)
        for (name, labels), value in values.items()
        if name.endswith("_bucket") and dict(labels)["operation"] == "match_prefix"
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == (float("inf"), 20)
    assert all(later >= earlier for (_, earlier), (_, later) in pairwise(buckets))


def test_a_reading_stands_in_its_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0, 127, 0, 128, 0, 2**31, 0, 0])
    monkeypatch.setattr("triradix.metrics.latencies.perf_counter_ns", lambda: next(clock))
    cache = timed(triradix.create("reference"))
    for _ in range(4):
        cache.evict(0)
    cumulative = dict(histograms(cache)["evict"].cumulative())
    assert [cumulative[bound] for bound in ("1.28e-07", "2.56e-07", "2.147483648", "+Inf")] == [2, 3, 3, 4]
    assert histograms(cache)["evict"].seconds == (127 + 128 + 2**31) / 1e9


def test_no_reading_is_lost_among_threads(implementation: Implementation) -> None:
    cache = timed(implementation.create())
    threads = [threading.Thread(target=lambda: [cache.peek_prefix([1]) for _ in range(2000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert histograms(cache)["peek_prefix"].count == 8000


def test_after_a_fork(implementation: Implementation) -> None:
    script = """
import os, sys, threading, importlib
from implementations import Implementation
from triradix.metrics import timed
cache = timed(Implementation(sys.argv[1]).create())
def work():
    while True:
        cache.peek_prefix([1])
threading.Thread(target=work, daemon=True).start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        cache.peek_prefix([1])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, implementation.name], check=True, timeout=60, env=environment
    )


def test_without_the_client() -> None:
    script = "import sys; sys.modules['prometheus_client'] = None\nimport triradix.metrics, triradix.metrics.collector"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'triradix[metrics]'" in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].startswith("ImportError: ")
