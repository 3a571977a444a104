"""The simulated engine's arithmetic and page. What it runs on is tested by `make test-sglang`."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from triradix.serving.calibration import CpuSteps, fit, not_negative
from triradix.serving.costs import GPUS, LAUNCH_SECONDS, LLMS, pool_tokens, step_seconds
from triradix.serving.simulate import summed_up
from triradix.serving.simulation_page import render
from triradix.serving.validation import Shape, written

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


COMPARED = {
    "calibration": {"cache": "sglang-rust", "away s": 0.004},
    "points": [
        {
            "cache": "triradix-rust",
            "shape": "long prompts",
            "concurrency": 8,
            "real": {
                "cache µs per request": 100,
                "requests/s": 20,
                "TTFT p50 ms": 10,
                "TTFT p99 ms": 40,
                "had a core": 0.875,
            },
            "predicted": {"cache µs per request": 50, "requests/s": 22, "TTFT p50 ms": 9, "TTFT p99 ms": 30},
        }
    ],
}


@pytest.mark.parametrize(
    ("validation", "says"),
    [
        (None, "not compared with the real engine on a CPU either"),
        (COMPARED, "cache time per request 0.50 to 0.50 times the real, requests/s 1.10 to 1.10"),
    ],
)
def test_the_page_says_that_it_is_a_simulation_and_loads_nothing(validation: dict[str, Any] | None, says: str) -> None:
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
            "validation": validation,
            "created": "today",
            "command": "make simulate",
        }
    )
    figures = re.findall(r"<figcaption><b>(.*?)</b>", page)
    assert len(figures) == 3
    assert all("simulation" in figure for figure in figures)
    assert "This is a simulation." in page and "not been compared with a real GPU" in page
    assert says in page
    assert ("Beside the real engine" in page) == ("88%" in page) == (validation is not None)
    assert all(f">{cache}<" in page for cache in caches)
    assert "a &lt;CPU&gt;" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "$" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not any(math.isnan(float(number)) for number in re.findall(r"[ML](\d+\.\d|nan)", page))


def test_a_fit_finds_what_steps_were_made_of() -> None:
    """Steps of a known cost, with the time in a cache, which is not the model's, on top."""
    truth = CpuSteps((0.002, 0.0005, 1e-5, 2e-9), (0.003, 0.0004, 1e-7))
    rng = random.Random(0)
    steps: list[dict[str, Any]] = []
    for _ in range(40):
        prefills = [(rng.randrange(1, 200), rng.randrange(900)) for _ in range(rng.randrange(1, 6))]
        decodes = [rng.randrange(1, 900) for _ in range(rng.randrange(1, 30))]
        pairs = sum(new * before + new * new // 2 for new, before in prefills)
        for kind, found, seconds in (
            ("extend", [len(prefills), sum(new for new, _ in prefills), pairs], truth(prefills, [])),
            ("decode", [len(decodes), sum(decodes)], truth([], decodes)),
        ):
            cache = rng.randrange(10**6)
            busy = round(seconds * 1e9) + cache
            steps.append({kind: found, "busy": busy, "wall": 3 * busy, "calls": [["match_prefix", cache]]})
    fitted = CpuSteps.read(json.loads(json.dumps(fit(steps).written())))
    assert fitted.prefill == pytest.approx(truth.prefill, rel=1e-3)
    assert fitted.decode == pytest.approx(truth.decode, rel=1e-3)
    with pytest.raises(ValueError, match="too few"):
        fit(steps[:3])


def test_nothing_fitted_is_negative() -> None:
    table = np.array([[1.0, n] for n in range(10)])
    assert not_negative(table, 5 - 0.1 * table[:, 1]) == pytest.approx((4.55, 0.0))
    assert not_negative(table, -table[:, 1]) == (0.0, 0.0)


def test_shapes_share_what_they_say() -> None:
    shape = Shape("x", groups=3, beginning=50, question=7, answer=4)
    rows = shape.rows(40, seed=0)
    assert len({tuple(row["input_ids"][:50]) for row in rows}) == 3
    assert len({tuple(row["input_ids"]) for row in rows}) == 40
    assert all(len(row["input_ids"]) == 57 and row["output_len"] == 4 for row in rows)
    assert shape.rows(40, seed=0) == rows != shape.rows(40, seed=1)


def test_an_earlier_comparison_is_taken_up(tmp_path: Path) -> None:
    assert written("no") is None
    path = tmp_path / "validation.json"
    path.write_text(json.dumps(COMPARED))
    assert written(str(path)) == COMPARED
    path.write_text("{}")
    with pytest.raises(ValueError, match="holds no comparison"):
        written(str(path))
