"""The simulation of requests that the real engine has served too, on its CPU. Runs in the engine's environment.

On its input a JSON object: ``steps`` (`CpuSteps`), ``away`` (seconds between two requests of a user), ``engine`` (of
`Engine`), ``caches``, and ``points`` with ``concurrency`` and ``rows``, a file. Prints a JSON line for each.
"""

from __future__ import annotations

import json
import sys
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from triradix.serving.calibration import CpuSteps
from triradix.serving.simulation import Engine, Listed, Simulation
from triradix.serving.sweep import makers

_CLOCK = "no overlap"


def predict(make: Any, engine: Engine, rows: list[dict[str, Any]], concurrency: int, away: float) -> dict[str, float]:
    """As the engine would say it, but for what is outside of it: TTFT from a request's arrival at the scheduler."""
    prompts = [(array("q", row["input_ids"]), row["output_len"]) for row in rows]
    outcome = Simulation(make, engine, Listed(prompts, concurrency), away).run()
    p50, p99 = np.quantile(outcome.first_token[_CLOCK], (0.5, 0.99)).tolist()
    return {
        "cache µs per request": sum(cache for _, cache in outcome.steps) / len(rows) * 1e6,
        "requests/s": len(rows) / outcome.ended[_CLOCK],
        "TTFT p50 ms": p50 * 1000,
        "TTFT p99 ms": p99 * 1000,
        "hit rate": outcome.hit_tokens / outcome.prompt_tokens,
    }


def main() -> None:
    from sglang.srt.server_args import ServerArgs, set_global_server_args_for_scheduler

    asked = json.load(sys.stdin)
    set_global_server_args_for_scheduler(ServerArgs(model_path="dummy", device="cpu"))
    engine = Engine(CpuSteps.read(asked["steps"]), rest=(0.0, 0.0), **asked["engine"])
    make = makers()
    for point in asked["points"]:
        rows = [json.loads(line) for line in Path(point["rows"]).read_text(encoding="utf-8").splitlines()]
        for cache in asked["caches"]:
            found = predict(make[cache], engine, rows, point["concurrency"], asked["away"])
            print("PREDICTED", json.dumps({"cache": cache, **point, **found}), flush=True)


if __name__ == "__main__":
    main()
