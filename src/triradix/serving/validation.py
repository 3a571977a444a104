"""The simulation beside the real engine on this machine's CPU, at points where both run.

A step's time is fitted to runs with one of SGLang's own caches and few requests at a time; then the simulation predicts
runs with more at a time, and with other caches, which the real engine serves too.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from triradix.serving.calibration import CpuSteps, fit
from triradix.serving.environment import DEFAULT, find, make, variables
from triradix.serving.measured import figures
from triradix.serving.model import VOCABULARY, tiny_model
from triradix.serving.plan import TRACE, Run, Settings, engine_flags
from triradix.serving.session import EngineFailed, Session, end_like_interrupted, engine

FIGURES = ("cache µs per request", "requests/s", "TTFT p50 ms", "TTFT p99 ms")
HAD_CORE = "had a core"
"""Of the time of the scheduler's steps, how much of it its thread was on a core: below 1 something else had them."""
CACHES = ("sglang-rust", "sglang-python", "triradix-rust", "triradix-reference")
CALIBRATED, PREDICTED = (1, 4), (8, 32)
"""Requests at a time."""
_REPEATS = 1


@dataclass(frozen=True)
class Shape:
    """Requests behind shared beginnings; lengths in tokens."""

    name: str
    groups: int
    beginning: int
    question: int
    answer: int

    def rows(self, count: int, seed: int) -> list[dict[str, Any]]:
        rng = random.Random(f"{self.name} {seed}")

        def words(length: int) -> list[int]:
            return rng.choices(range(4, VOCABULARY), k=length)

        beginnings = [words(self.beginning) for _ in range(self.groups)]
        return [
            {"input_ids": rng.choice(beginnings) + words(self.question), "output_len": self.answer}
            for _ in range(count)
        ]


SHAPES = (Shape("long prompts", 16, 1024, 64, 8), Shape("long answers", 8, 256, 100, 32))
SETTINGS = Settings(requests=96, schedule_policy="lpm")


def validate(python: Path, caches: Sequence[str] = CACHES) -> dict[str, Any]:
    """EngineFailed if an engine, or the simulation, stops; some minutes."""
    with TemporaryDirectory(prefix="triradix-validation-") as made:
        folder = Path(made)
        calibration, served = _serve(python, folder, caches)
        points = [
            {"shape": shape.name, "concurrency": concurrency, "rows": str(folder / shape.name)}
            for shape in SHAPES
            for concurrency in PREDICTED
        ]
        predicted = _predict(python, caches, points, calibration)
    lines = []
    for point in predicted:
        real = served[point["cache"], point["shape"], point["concurrency"]]
        # The client's clock starts before the scheduler's.
        for name in ("TTFT p50 ms", "TTFT p99 ms"):
            point[name] += calibration["before s"] * 1000
        lines.append(
            {
                "cache": point["cache"],
                "shape": point["shape"],
                "concurrency": point["concurrency"],
                "real": {name: median(line[name] for line in real) for name in (*FIGURES, "hit rate", HAD_CORE)},
                "predicted": {name: point[name] for name in (*FIGURES, "hit rate")},
            }
        )
    return {"calibration": calibration, "shapes": [asdict(shape) for shape in SHAPES], "points": lines}


def written(path: str) -> dict[str, Any] | None:
    """What an earlier `main` wrote there; None for ``no``. OSError or ValueError if there is nothing of the kind."""
    if path == "no":
        return None
    found: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    if not found.keys() >= {"calibration", "points"}:
        raise ValueError(f"{path} holds no comparison with the real engine")
    return found


def main(arguments: list[str]) -> int:
    """``python -m triradix.serving.validation PATH``: only this, into a file."""
    python = find(DEFAULT) or make(DEFAULT)
    text = json.dumps(validate(python), indent=1)
    Path(arguments[0]).write_text(text, encoding="utf-8")
    return 0


def _serve(python: Path, folder: Path, caches: Sequence[str]) -> tuple[dict[str, Any], dict[Any, list[dict[str, Any]]]]:
    """The real engine with each cache: what the first says of the CPU, and the figures of all points."""
    model = tiny_model(python)
    served: dict[Any, list[dict[str, Any]]] = {}
    for shape in SHAPES:
        for seed, name in ((0, shape.name), (1, f"{shape.name}, calibration")):
            rows = shape.rows(SETTINGS.requests, seed)
            (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    calibration: dict[str, Any] = {}
    for cache in caches:
        print(f"the real engine, {cache}", file=sys.stderr, flush=True)
        with engine(python, model, SETTINGS, cache, folder / "engine", disable_overlap_schedule=True) as running:
            if not calibration:
                calibration = _calibrate(running, folder, cache)
            for _ in range(_REPEATS):
                for shape in SHAPES:
                    for concurrency in PREDICTED:
                        line, _ = _run(running, cache, concurrency, folder / shape.name)
                        served.setdefault((cache, shape.name, concurrency), []).append(line)
    return calibration, served


def _calibrate(running: Session, folder: Path, cache: str) -> dict[str, Any]:
    """The time of a step, and from the runs of one request at a time what is outside of all steps."""
    steps, outside, before = [], [], []
    for shape in SHAPES:
        for concurrency in CALIBRATED:
            line, seen = _run(running, cache, concurrency, folder / f"{shape.name}, calibration")
            steps += seen
            if concurrency == 1:
                prefill = sum(step["wall"] for step in seen if "extend" in step) / 1e9 / line["requests"]
                outside.append((line["duration"] - line["wall s"]) / line["requests"])
                before.append(line["mean TTFT ms"] / 1000 - prefill)
    return {
        "cache": cache,
        "steps": fit(steps).written(),
        "away s": max(0.0, min(outside)),
        "before s": max(0.0, min(before)),
    }


def _run(running: Session, cache: str, concurrency: int, rows: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    bench, steps = running.run(SETTINGS, Run(0, cache, TRACE, concurrency), str(rows))
    found = figures(steps, bench["completed"])
    hits = bench["cache_report"]
    line = {
        "requests": bench["completed"],
        "duration": bench["duration"],
        "wall s": found["wall s"],
        HAD_CORE: found["busy s"] / found["wall s"],
        "cache µs per request": found["cache µs per request"],
        "requests/s": bench["request_throughput"],
        "TTFT p50 ms": bench["median_ttft_ms"],
        "TTFT p99 ms": bench["p99_ttft_ms"],
        "mean TTFT ms": bench["mean_ttft_ms"],
        "hit rate": hits["total_cached_tokens"] / hits["total_prompt_tokens"],
    }
    return line, steps


def _predict(
    python: Path, caches: Sequence[str], points: Sequence[dict[str, Any]], calibration: dict[str, Any]
) -> list[dict[str, Any]]:
    flags = engine_flags(SETTINGS)
    asked = {
        "steps": CpuSteps.read(calibration["steps"]).written(),
        "away": calibration["away s"],
        "engine": {
            "pool_tokens": flags["pool_tokens"],
            "chunk": flags["chunked_prefill_size"],
            "running": flags["max_running_requests"],
        },
        "caches": list(caches),
        "points": list(points),
    }
    done = subprocess.run(
        [str(python), "-m", "triradix.serving.predict"],
        input=json.dumps(asked),
        env=variables(),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise EngineFailed(f"the simulation stopped: {done.stderr.strip().splitlines()[-1]}")
    lines = [line for line in done.stdout.splitlines() if line.startswith("PREDICTED ")]
    return [json.loads(line.removeprefix("PREDICTED ")) for line in lines]


if __name__ == "__main__":
    end_like_interrupted()
    sys.exit(main(sys.argv[1:]))
