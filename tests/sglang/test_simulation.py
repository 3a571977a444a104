"""The simulated engine: the same schedule whatever the cache, and nothing is lost on the way."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

import pytest
from sglang.srt.mem_cache.base_prefix_cache import EvictParams

from triradix.serving.calibration import CpuSteps
from triradix.serving.costs import GPUS, Gpu, Llm
from triradix.serving.predict import predict
from triradix.serving.simulation import CLOCKS, Conversations, Engine, Listed, Load, Simulation
from triradix.serving.sweep import CACHES, makers

LOAD = Load(users=6, requests=40, system=200, shared=2, history=60, turns=3, question=30, answer=8)
SMALL = Llm("small", 1e8, 4, 512, 256)
# Memory for the weights and some 4,000 tokens.
TIGHT = Gpu("tight", 1e14, 1e12, (1e8 * 2 + 4000 * SMALL.kv_bytes) / 0.85)


def simulate(cache: str, gpu: Gpu, load: Load = LOAD, page_size: int = 1) -> Simulation:
    simulation = Simulation(makers()[cache], Engine.on(gpu, SMALL, page_size=page_size), Conversations(load))
    outcome = simulation.run()
    assert outcome.finished == load.requests
    assert simulation.cache.protected_size() == 0
    assert simulation.pool.left + simulation.cache.evictable_size() == simulation.pool.size
    assert all(len(outcome.first_token[clock]) == load.requests for clock in CLOCKS)
    for clock in ("overlap", "no overlap"):
        assert outcome.ended[f"{clock}, free cache"] <= outcome.ended[clock]
    assert outcome.ended["overlap"] <= outcome.ended["no overlap"]
    assert all(value >= 0 for clock in CLOCKS for value in outcome.first_token[clock])
    return simulation


def test_every_cache_sees_the_same_schedule() -> None:
    """Roomy, so that nothing is evicted: then hits, steps and the GPU's time are equal."""
    found = [simulate(cache, GPUS["H100"]).outcome for cache in CACHES]
    assert len({(outcome.hit_tokens, outcome.prompt_tokens, len(outcome.steps)) for outcome in found}) == 1
    assert len({outcome.ended["overlap, free cache"] for outcome in found}) == 1
    assert found[0].hit_tokens > 0.6 * found[0].prompt_tokens


@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("cache", CACHES)
def test_a_pool_that_evicts(cache: str, page_size: int) -> None:
    simulation = simulate(cache, TIGHT, page_size=page_size)
    assert simulation.pool.size < 4100
    simulation.cache.evict(EvictParams(num_tokens=10**9))
    assert simulation.pool.left == simulation.pool.size


def test_idle_conversations_fill_the_cache() -> None:
    users = Conversations(replace(LOAD, requests=0, idle=20))
    simulation = Simulation(makers()["triradix-rust"], Engine.on(TIGHT, SMALL), users)
    simulation.run()
    assert simulation.cache.total_size() == 2 * LOAD.system + 20 * LOAD.history


def test_listed_requests_one_at_a_time_by_hand() -> None:
    """Each waits for the one before, and what lies between two of them; the second hits what the first left."""
    prompts = [(array("q", range(100)), 3), (array("q", [*range(100), 7, 8]), 1)]
    engine = Engine(lambda prefills, decodes: 1.0 + sum(new for new, _ in prefills), 1000, rest=(0.0, 0.0))
    simulation = Simulation(makers()["triradix-rust"], engine, Listed(prompts, 1), away=0.5)
    outcome = simulation.run()
    assert outcome.finished == 2 and outcome.hit_tokens == 100
    # Away, 100 tokens, two more; away, 2 tokens.
    assert outcome.ended["no overlap, free cache"] == pytest.approx(0.5 + 101 + 2 + 0.5 + 3, abs=0.05)
    assert outcome.first_token["no overlap, free cache"] == pytest.approx([101, 3], abs=0.05)


def test_prefill_goes_first() -> None:
    """As SGLang has it: while somebody is prefilled, nobody decodes."""
    steps: list[tuple[int, int]] = []

    def step(prefills: Any, decodes: Any) -> float:
        steps.append((len(prefills), len(decodes)))
        return 1.0

    prompts = [(array("q", range(start, start + 50)), 2) for start in (0, 100, 200)]
    Simulation(makers()["triradix-rust"], Engine(step, 1000, chunk=80), Listed(prompts, 3)).run()
    assert steps == [(2, 0), (2, 0), (0, 3)]


def test_a_pool_too_small_says_so() -> None:
    tiny = replace(TIGHT, memory=(1e8 * 2 + 100 * SMALL.kv_bytes) / 0.85)
    with pytest.raises(MemoryError, match="6 users do not fit into a pool of"):
        simulate("triradix-rust", tiny)


def test_a_prediction_by_hand() -> None:
    """Two users, four requests of one prompt: two are computed side by side, the others hit all but a token."""
    rows = [{"input_ids": list(range(64)), "output_len": 2}] * 4
    steps = CpuSteps((0.5, 0.0, 0.01, 0.0), (0.25, 0.0, 0.0))
    found = predict(makers()["triradix-rust"], Engine(steps, 1000, rest=(0.0, 0.0)), rows, 2, away=0.0)
    assert found["hit rate"] == pytest.approx(2 * 63 / (4 * 64))
    assert found["requests/s"] == pytest.approx(4 / (0.5 + 1.28 + 0.25 + 0.5 + 0.02 + 0.25), rel=0.05)
    assert found["TTFT p50 ms"] == pytest.approx((1780 + 520) / 2, rel=0.05)
    assert 0 < found["cache µs per request"] < 50_000
