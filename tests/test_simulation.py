"""The simulated engine's arithmetic and page. What it runs on is tested by `make test-sglang`."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from triradix.serving.costs import GPUS, LAUNCH_SECONDS, LLMS, pool_tokens, step_seconds
from triradix.serving.simulate import summed_up
from triradix.serving.simulation_page import render

H100, LLAMA = GPUS["H100"], LLMS["8B"]


def test_a_step_by_hand() -> None:
    """Decoding one token reads all weights; a long prompt is bound by arithmetic."""
    decode = step_seconds(H100, LLAMA, [], [1000])
    assert decode == pytest.approx((8.03e9 * 2 + 1000 * 131_072) / (3.35e12 * 0.75) + LAUNCH_SECONDS)
    prefill = step_seconds(H100, LLAMA, [(8192, 0)], [])
    attention = 4 * 32 * 4096 * 8192 * 4096
    assert prefill == pytest.approx((2 * 8.03e9 * 8192 + attention) / (989e12 * 0.5) + LAUNCH_SECONDS)
    assert step_seconds(H100, LLAMA, [], []) == 0


def test_more_takes_longer_and_a_hit_saves() -> None:
    whole, hit = step_seconds(H100, LLAMA, [(4000, 0)], []), step_seconds(H100, LLAMA, [(200, 3800)], [])
    assert hit < whole / 5
    assert step_seconds(GPUS["A100"], LLAMA, [(4000, 0)], []) > 2 * whole
    assert step_seconds(H100, LLAMA, [], [1000] * 64) < 64 * step_seconds(H100, LLAMA, [], [1000])


def test_the_pool_is_what_the_weights_leave() -> None:
    assert pool_tokens(H100, LLAMA) == int((68e9 - 16.06e9) / 131_072)
    assert all(pool_tokens(gpu, llm) > 100_000 for gpu in GPUS.values() for llm in LLMS.values())


def line(cache: str, at: int, seconds: float, gpu_seconds: float = 2.0) -> dict[str, Any]:
    levels = {"50": 0.01, "99": 0.1}
    return {
        "sweep": "users, 1B",
        "varies": "users",
        "at": at,
        "gpu": "H100",
        "llm": "1B",
        "cache": cache,
        "load": {"users": at},
        "hit rate": 0.8,
        "cache per request": seconds,
        "longest cache step": seconds * 3,
        "cache seconds": seconds * 100,
        "gpu seconds": gpu_seconds,
        "first_token": {
            "overlap, free cache": levels,
            "no overlap, free cache": levels,
            "overlap": levels,
            "no overlap": {level: value + seconds for level, value in levels.items()},
        },
    }


def test_medians_of_the_repeats() -> None:
    entries = summed_up([line("triradix-rust", 4, seconds) for seconds in (1e-4, 5e-4, 2e-4)])
    (entry,) = entries
    assert entry["cache per request"] == 2e-4
    assert entry["cache per request, from to"] == [1e-4, 5e-4]
    assert entry["share"] == pytest.approx(0.01)
    assert entry["added, overlap"]["99"] == 0
    assert entry["added, no overlap"]["99"] == pytest.approx(2e-4)


def test_the_page_says_that_it_is_a_simulation_and_loads_nothing() -> None:
    caches = ("sglang-python", "sglang-rust", "triradix-reference", "triradix-cython", "triradix-rust")
    lines = [line(cache, at, 1e-4 * at) for cache in caches for at in (1, 4, 16)]
    machine = {"cpu": "a <CPU>", "cores": 2, "python": "CPython 3.11"}
    page = render(
        {
            "points": summed_up(lines),
            "repeats": 3,
            "machine": machine,
            "triradix": "0",
            "commit": None,
            "created": "today",
            "command": "make simulate",
        }
    )
    figures = re.findall(r"<figcaption><b>(.*?)</b>", page)
    assert len(figures) == 3
    assert all("simulation" in figure for figure in figures)
    assert "This is a simulation." in page
    assert all(f">{cache}<" in page for cache in caches)
    assert "a &lt;CPU&gt;" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "$" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not any(math.isnan(float(number)) for number in re.findall(r"[ML](\d+\.\d|nan)", page))
