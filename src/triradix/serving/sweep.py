"""The points of the simulation, each with each cache in turn. Runs in the engine's environment; a JSON line a point.

python -m triradix.serving.sweep '{"quick": true}'
"""

from __future__ import annotations

import gc
import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from triradix.serving.costs import GPUS, LLMS
from triradix.serving.simulation import CLOCKS, Conversations, Engine, Load, Simulation

CACHES = ("sglang-python", "sglang-rust", "triradix-reference", "triradix-cython", "triradix-rust")


@dataclass(frozen=True)
class Point:
    """``varies``: which of the load's numbers, or of the engine's, this point is one value of; ``at``: the value."""

    sweep: str
    varies: str
    at: int
    gpu: str
    llm: str
    load: Load
    matched_waiting: int = 128


def points(quick: bool) -> Iterator[Point]:
    """Users, context, cached leaves, and the length of the queue that is matched."""
    base = Load(users=64, requests=200 if quick else 600)
    for llm in ("1B", "8B", "70B"):
        for users in (1, 16, 128, 512) if quick else (1, 4, 16, 64, 128, 256, 512, 1024):
            requests = max(base.requests, 2 * users)
            yield Point(f"users, {llm}", "users", users, "H100", llm, replace(base, users=users, requests=requests))
    for context in (1_000, 8_000) if quick else (1_000, 4_000, 8_000, 16_000):
        load = replace(base, users=32, system=context // 2, history=context // 2, turns=3)
        yield Point("context", "tokens of context", context, "H100", "1B", load)
    for idle in (0, 2_000) if quick else (0, 1_000, 3_000, 10_000, 30_000):
        # Enough of them to fill the pool: every step has to evict.
        history = max(20, 2_000_000 // max(idle, 1)) if idle >= 1_000 else 400
        yield Point(
            "leaves", "cached conversations", idle, "H100", "1B", replace(base, idle=idle, history=min(history, 2_000))
        )
    for waiting in (128, 1_000) if quick else (128, 500, 1_000, 2_000):
        users = 512 + waiting
        load = replace(base, users=users, requests=users + 100)
        yield Point("queue", "waiting requests, all matched at every step", waiting, "H100", "1B", load, 10**9)


def makers() -> dict[str, Callable[[Any], Any]]:
    from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
    from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache

    from triradix.sglang.cache import TriradixCache

    def sglang(core: str) -> Callable[[Any], Any]:
        def make(params: Any) -> Any:
            params.tree_components, params.tree_core_backend = (ComponentType.FULL,), core
            return UnifiedRadixCache(params)

        return make

    def ours(implementation: str) -> Callable[[Any], Any]:
        return lambda params: TriradixCache(params, implementation)

    return {name: (sglang if name.startswith("sglang") else ours)(name.partition("-")[2]) for name in CACHES}


def measure(point: Point, make: Callable[[Any], Any]) -> dict[str, Any]:
    gc.collect()
    engine = Engine.on(GPUS[point.gpu], LLMS[point.llm], matched_waiting=point.matched_waiting)
    outcome = Simulation(make, engine, Conversations(point.load)).run()
    gpu, cache = np.array(outcome.steps).T
    return {
        "first_token": {
            clock: {str(level): float(np.percentile(outcome.first_token[clock], level)) for level in (50, 99)}
            for clock in CLOCKS
        },
        "ended": outcome.ended,
        "steps": len(gpu),
        "gpu seconds": float(gpu.sum()),
        "cache seconds": float(cache.sum()),
        "longest cache step": float(cache.max()),
        "cache per request": float(cache.sum() / outcome.finished),
        "requests": outcome.finished,
        "hit rate": outcome.hit_tokens / outcome.prompt_tokens,
    }


def main() -> None:
    from sglang.srt.server_args import ServerArgs, set_global_server_args_for_scheduler

    options = json.loads(sys.argv[1])
    set_global_server_args_for_scheduler(ServerArgs(model_path="dummy", device="cpu"))
    caches = {name: make for name, make in makers().items() if name in options.get("caches", CACHES)}
    rng = random.Random(0)
    for point in points(options.get("quick", False)):
        for _ in range(options.get("repeats", 1)):
            for name in rng.sample(list(caches), len(caches)):
                found = measure(point, caches[name])
                print("POINT", json.dumps({"cache": name, **asdict(point), **found}), flush=True)


if __name__ == "__main__":
    main()
