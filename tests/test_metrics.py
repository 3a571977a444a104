"""Metrics: the numbers of `stats()` by name, as text and through prometheus_client; and what operations took."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import steps
from implementations import Implementation
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import triradix
from triradix.metrics import latencies, prometheus_text, timed
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
        "triradix_scrape_success": 1,
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


def through_the_client(caches: Any) -> str:
    registry = CollectorRegistry()
    registry.register(CacheCollector(caches))
    return generate_latest(registry).decode()


SHOWN = [prometheus_text, through_the_client]


class Odd:
    """A cache like another one, but for what it is given."""

    def __init__(self, cache: Any, **instead: Any) -> None:
        self._cache = cache
        self.__dict__.update(instead)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


def failing() -> Any:
    raise triradix.IntegrityError("unusable until reset()")


@pytest.mark.parametrize("show", SHOWN)
@pytest.mark.parametrize(
    "instead",
    [
        {"stats": failing},
        {"stats": dict},
        {"stats": lambda: dict.fromkeys(triradix.create("reference").stats())},
        {"evictable_size": failing},
        {"protected_size": failing},
    ],
)
def test_one_that_cannot_be_asked_spoils_no_scrape(
    implementation: Implementation, show: Any, instead: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = timed(used(implementation)), Odd(used(implementation), **instead)
    good.match_prefix([1])
    alone = parsed(show({"good": good}))
    both = parsed(show({"bad": bad, "good": good}))
    assert both.pop(("triradix_scrape_success", (("cache", "bad"),))) == 0
    assert both == alone
    assert alone["triradix_scrape_success", (("cache", "good"),)] == 1
    assert {record.name for record in caplog.records} == {"triradix.metrics"}
    assert caplog.records[0].message.startswith("the cache 'bad' cannot be asked: ")


def test_one_that_an_internal_error_has_left_unusable() -> None:
    cache: Any = triradix.create("rust")
    with pytest.raises(triradix.IntegrityError):
        cache._fail(changing=True)
    success = ("triradix_scrape_success", (("cache", "x"),))
    assert parsed(prometheus_text({"x": cache})) == {success: 0}
    cache.reset()
    assert parsed(prometheus_text({"x": cache}))[success] == 1


@pytest.mark.parametrize("show", SHOWN)
def test_numbers_of_numpy(implementation: Implementation, show: Any) -> None:
    cache = used(implementation)
    odd = Odd(cache, stats=lambda: {name: np.int64(count) for name, count in cache.stats().items()})
    assert parsed(show({"x": odd})) == parsed(show({"x": cache}))


@pytest.mark.parametrize("show", SHOWN)
def test_what_is_no_name_and_no_cache(implementation: Implementation, show: Any) -> None:
    cache = implementation.create()
    for wrong, error, said in (
        ({1: cache}, TypeError, "the name of a cache must be a str, not int: 1"),
        ({None: cache}, TypeError, "the name of a cache must be a str, not NoneType: None"),
        ({b"x": cache}, TypeError, "the name of a cache must be a str, not bytes: b'x'"),
        ({"\ud800": cache}, ValueError, r"the name '\\ud800' of a cache has a lone surrogate"),
        ({"x": None}, TypeError, r"caches\['x'\] must be a cache, not NoneType"),
        ([("x", cache)], TypeError, "caches must be a mapping of names to caches, not list"),
        (cache, TypeError, "caches must be a mapping of names to caches, not "),
    ):
        with pytest.raises(error, match=said):
            show(wrong)
    with pytest.raises(TypeError, match="cache must be a cache, not NoneType"):
        timed(None)  # type: ignore[arg-type]


def test_a_wrong_name_that_comes_later(implementation: Implementation) -> None:
    caches: dict[Any, Any] = {}
    registry = CollectorRegistry()
    registry.register(CacheCollector(caches))
    caches[1] = implementation.create()
    with pytest.raises(TypeError, match="the name of a cache must be a str"):
        generate_latest(registry)


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


class Calls:
    """A timed cache of no tree, which is quick, with its calls counted; few of them make a fold."""

    def __init__(self) -> None:
        self.cache, self.made = timed(triradix.create("reference")), 0

    def make(self, count: int) -> None:
        for _ in range(count):
            self.cache.peek_prefix([])
            self.made += 1

    def counted(self) -> int:
        histogram = histograms(self.cache).get("peek_prefix")
        return histogram.count if histogram else 0

    def see(self) -> None:
        """A call that is under way is noted or not yet; somebody may come in between."""
        before = self.made
        assert before <= self.counted() <= self.made + 1

    def nested(self) -> None:
        self.see()
        before = self.made, self.counted()
        self.make(5)
        assert self.counted() - before[1] == self.made - before[0] == 5

    def in_a_thread(self) -> None:
        thread = threading.Thread(target=self.nested)
        thread.start()
        thread.join()

    def run(self) -> None:
        self.make(5)
        self.see()


@pytest.mark.parametrize("who", ["a signal handler", "another thread"])
def test_somebody_else_at_every_step(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits, nothing is lost and nothing counts twice, whoever times and reads in the middle of it."""
    monkeypatch.setattr(latencies, "FOLDED_AT", 3)
    calls = Calls()
    action = calls.nested if who == "a signal handler" else calls.in_a_thread
    for step in steps.at_every_step(timed, action, calls.run):
        assert calls.counted() == calls.made, step
        assert latencies._folding == []
        calls.make(1)
        assert len(calls.cache.readings["peek_prefix"]) <= 4  # type: ignore[attr-defined]
    assert calls.made > 1000


def test_a_fork_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parent and child go on from there with the same counts."""
    monkeypatch.setattr(latencies, "FOLDED_AT", 3)
    child = -1

    def fork() -> None:
        nonlocal child
        child = os.fork()
        calls.nested()

    for step in range(0, 10_000, 3):
        calls = Calls()
        try:
            reached = steps.at_step(step, timed, fork, calls.run)
            calls.make(5)
            right = calls.counted() == calls.made and latencies._folding == []
        finally:
            if child == 0:
                os._exit(0 if right else 1)
        assert right
        if not reached:
            break
        assert os.waitpid(child, 0)[1] == 0, step


def test_a_fork_while_another_thread_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latencies, "FOLDED_AT", 3)
    calls = Calls()
    inside, on = threading.Event(), threading.Event()
    summed = latencies._summed

    def slow(kept: latencies.Kept) -> latencies.Histogram:
        if threading.current_thread() is thread:
            inside.set()
            on.wait()
        return summed(kept)

    monkeypatch.setattr(latencies, "_summed", slow)
    thread = threading.Thread(target=lambda: calls.make(3))
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        calls.make(9)
        few = len(calls.cache.readings["peek_prefix"]) <= 4  # type: ignore[attr-defined]
        os._exit(0 if few and calls.counted() == 3 + 9 else 1)
    on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert calls.counted() == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_fold_that_is_interrupted(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latencies, "FOLDED_AT", 3)
    calls = Calls()

    def interrupted(kept: latencies.Kept) -> latencies.Histogram:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(latencies, "_summed", interrupted)
        if error is MemoryError:
            calls.make(9)  # nobody hears of it
        else:
            calls.make(3 - 1)
            with pytest.raises(error):
                calls.cache.peek_prefix([])
            calls.made += 1
    calls.make(4)
    assert calls.counted() == calls.made
    assert len(calls.cache.readings["peek_prefix"]) <= 4  # type: ignore[attr-defined]


def test_finalizers_that_use_the_cache_during_a_scrape(implementation: Implementation) -> None:
    cache = timed(implementation.create())
    node = cache.insert([1, 2, 3], [0, 1, 2]).node
    unlocked = 0

    class Request:
        """One that is thrown away in a cycle, and gives back its lock when the collector finds it."""

        def __init__(self) -> None:
            self.itself = self
            cache.inc_lock_ref(node)

        def __del__(self) -> None:
            nonlocal unlocked
            cache.dec_lock_ref(node)
            unlocked += 1

    usual = gc.get_threshold()
    gc.set_threshold(20, 2, 2)
    try:
        for _ in range(500):
            Request()
            prometheus_text({"a": cache})
    finally:
        gc.set_threshold(*usual)
    gc.collect()
    found = histograms(cache)
    assert unlocked == found["inc_lock_ref"].count == found["dec_lock_ref"].count == 500


def test_without_the_client() -> None:
    script = "import sys; sys.modules['prometheus_client'] = None\nimport triradix.metrics, triradix.metrics.collector"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'triradix[metrics]'" in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].startswith("ImportError: ")
