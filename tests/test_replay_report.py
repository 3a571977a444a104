"""What is made of the measurements: the comparison, the figures, the page."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from html_page import Page

from triradix.replay.charts import Axis, Series, line_chart, log_axis
from triradix.replay.page import render_page
from triradix.replay.recorder import OPERATIONS, CollectorPauses, Measurement, resident_bytes
from triradix.replay.report import Report, make_report, write_json
from triradix.replay.runner import first_difference
from triradix.replay.table import bytes_text, duration_text, print_table, time_text
from triradix.replay.worker import Settings
from triradix.replay.workloads import make_workload

SETTINGS = Settings(capacity=4096, page_size=16, policy="lru", chunk=512, concurrency=2, with_output=True)
NAMES = ("reference", "cython", "rust")


def measurement(name: str, factor: int = 1, requests: int = 60, **changes: Any) -> Measurement:
    rng = np.random.default_rng(1)
    prompt = rng.integers(100, 1000, requests)
    fields: dict[str, Any] = {
        "operations": {each: rng.integers(1000, 90_000, 3 * requests) // factor for each in OPERATIONS},
        "time_ns": rng.integers(10_000, 900_000, requests) // factor,
        "prompt": prompt,
        "hit": prompt // 2,
        "evicted": rng.integers(0, 500, requests),
        "digest": rng.integers(0, 2**32, requests),
        "wall_s": 1.0,
        "preempted": 3,
        "gc_pauses_ns": np.array([1_000_000, 3_000_000]),
        "rss_before": 30_000_000,
        "rss_peak": 50_000_000,
        "cached_tokens": 4096,
        "stats": {"memory_bytes": 81_000, "nodes": 7},
    }
    return Measurement(name, **(fields | changes))


def report(*measured: Measurement) -> Report:
    requests = len(measured[0].hit)
    trace = make_workload("mixed", requests, 0)
    return make_report(trace, SETTINGS, list(measured), "triradix replay --workload '<mixed>'")


def test_agreement_and_the_first_difference() -> None:
    one = measurement("reference")
    assert first_difference(one, measurement("rust", factor=10)) is None

    other = measurement("rust")
    other.hit[[7, 20]] += 1
    message = first_difference(one, other)
    assert message is not None
    assert "at request 7 (counted from 0)" in message
    assert f"reference hit {one.hit[7]} and evicted" in message
    assert f"rust hit {other.hit[7]} and evicted" in message

    other = measurement("cython")
    other.evicted[3] += 16
    assert "at request 3 (c" in (first_difference(one, other) or "")

    other = measurement("cython")
    other.digest[59] ^= 1
    assert "at request 59 (c" in (first_difference(one, other) or "")
    assert "the slots that they returned differ" in (first_difference(one, other) or "")


def test_figures() -> None:
    times = np.arange(1, 1001) * 1000
    one = measurement("rust", operations=dict.fromkeys(OPERATIONS, times))
    one.hit[:5] = -1
    made = report(one)
    outcome, costs = made["outcome"], made["implementations"]["rust"]
    assert outcome["did_not_fit"] == 5
    assert outcome["hit_rate_tokens"] == pytest.approx(one.hit[5:].sum() / one.prompt[5:].sum())
    assert outcome["hit_rate_blocks"] is None
    match = costs["operations"]["match"]
    assert (match["calls"], match["max"], match["p50"]) == (1000, 1000, pytest.approx(500.5))
    assert match["p99"] == pytest.approx(990, abs=1)
    assert match["total_s"] == pytest.approx(0.5005)
    assert costs["time_in_cache_per_request"]["calls"] == 55
    assert costs["gc"] == {"pauses": 2, "total_ms": 4.0, "max_ms": 3.0}
    curve = costs["curves"]["cdf"]["match"]
    assert curve == sorted(curve)
    assert len(curve) == len(made["curves"]["cdf_levels"])
    assert made["curves"]["hit_rate_so_far"][-1] == pytest.approx(outcome["hit_rate_tokens"])


def test_a_run_in_which_nothing_fitted_or_nothing_was_evicted() -> None:
    nothing = measurement("rust", operations={each: np.zeros(0, np.int64) for each in OPERATIONS})
    nothing.hit[:] = -1
    nothing.evicted[:] = 0
    made = report(nothing)
    assert made["outcome"]["hit_rate_tokens"] == 0
    json.loads(write_json(made))
    assert "no calls" in render_page(made)


def test_json_is_plain() -> None:
    made = report(*(measurement(name) for name in NAMES))
    assert json.loads(write_json(made)) == made


def test_the_page_stands_alone_and_says_everything() -> None:
    made = report(*(measurement(name, factor) for name, factor in zip(NAMES, (30, 3, 1), strict=True)))
    text = render_page(made)
    page = Page(text)
    assert page.open == []
    assert page.stands_alone
    assert page.curves == 3 * (2 + len(OPERATIONS)) + 2
    words = " ".join(page.words)
    for expected in (*NAMES, "triradix replay --workload '<mixed>'", "60", "4,096 tokens", "NumPy", "Hit rate 5"):
        assert expected in words
    assert "nan" not in words.lower().split()


def test_the_page_escapes_what_it_is_given() -> None:
    made = report(measurement("rust"))
    made["trace"]["name"] = "<script>alert(1)</script> & $trace"
    text = render_page(made)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; $trace" in text


def test_the_table_shows_each_implementation(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    print_table(report(*(measurement(name) for name in NAMES)), Console(width=80))
    shown = capsys.readouterr().out
    for expected in (*NAMES, *OPERATIONS, "p50", "p99", "max", "GC pauses", "50 MB", "81 kB", "same answers"):
        assert expected in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_numbers_for_people() -> None:
    assert [time_text(value) for value in (None, 0.1234, 12.345, 1234.5)] == ["–", "0.123", "12.3", "1,234"]
    assert [duration_text(value) for value in (0.5, 999.4, 1500, 2.5e6)] == ["0.5 µs", "999 µs", "1.5 ms", "2.5 s"]
    assert [bytes_text(value) for value in (999, 1000, 50e6, 1.5e9, 2e12)] == [
        "999 B",
        "1 kB",
        "50 MB",
        "1.5 GB",
        "2e+03 GB",
    ]


def test_axes() -> None:
    axis = log_axis([0.0, 3.0, 450.0], str)
    assert (axis.low, axis.high) == (1.0, 1000.0)
    assert axis.ticks() == [1.0, 10.0, 100.0, 1000.0]
    assert (axis.at(0), axis.at(10), axis.at(5000)) == (0.0, pytest.approx(1 / 3), 1.0)
    assert log_axis([10.0], str).high > log_axis([10.0], str).low
    assert Axis(0, 12_031, False, str).ticks() == [0, 5000, 10_000]
    assert Axis(0, 1, False, str).ticks() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    chart = line_chart("t", [Series("a", "s0", [0, 0.5, 1], [0, None, 1])], Axis(0, 1, False, str), axis, ("", ""))
    assert chart.count("M") == 2, "a gap begins a new stroke"


def test_a_chart_makes_room_for_long_labels() -> None:
    def left(axis: Axis) -> float:
        chart = line_chart("t", [Series("a", "s0", [0, 1], [1, 2])], Axis(0, 1, False, str), axis, ("", ""))
        return min(float(at) for at in re.findall(r'<line class="grid" x1="([\d.]+)"', chart))

    assert left(log_axis([1.0], str)) == 52
    assert left(log_axis([1.0, 1e6], lambda value: f"{value:,.0f} µs")) > 52 + 4 * 7


def test_collector_pauses_are_noted() -> None:
    import gc

    with CollectorPauses() as collector:
        gc.collect()
        gc.collect()
    assert len(collector.pauses_ns) == 2
    assert min(collector.pauses_ns) > 0
    before = len(collector.pauses_ns)
    gc.collect()
    assert len(collector.pauses_ns) == before


def test_resident_memory_is_this_process() -> None:
    now, peak = resident_bytes()
    assert 5_000_000 < now <= peak
    block = np.ones(8_000_000)
    assert resident_bytes()[1] >= peak
    assert resident_bytes()[0] > now + 0.5 * block.nbytes


def test_a_point_by_itself_is_drawn_and_labels_do_not_overlap() -> None:
    marks = (1.0, 64.0, 512.0, 1024.0)
    x = Axis(1, 1024, True, lambda value: f"{value:,.0f}", marks)
    y = Axis(0, 10, False, str)
    series = Series("one", "s0", marks, (None, 3.0, None, 5.0))
    chart = line_chart("title", [series], x, y, ("{x}", "{y}"))
    (path,) = re.findall(r' d="(.*?)"', chart)
    assert re.fullmatch(r"(M[\d. ]+m-3 0h6){2}", path)
    labels = re.findall(r'y="229" text-anchor="\w+">(.*?)<', chart)
    assert labels == ["1", "64", "1,024"]
