"""The simulated engine: the same schedule whatever the cache, and nothing is lost on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sglang.srt.mem_cache.base_prefix_cache import EvictParams

from triradix.serving.costs import GPUS, Gpu, Llm
from triradix.serving.simulation import CLOCKS, Load, Simulation
from triradix.serving.sweep import CACHES, makers

LOAD = Load(users=6, requests=40, system=200, shared=2, history=60, turns=3, question=30, answer=8)
SMALL = Llm("small", 1e8, 4, 512, 256)
# Memory for the weights and some 4,000 tokens.
TIGHT = Gpu("tight", 1e14, 1e12, (1e8 * 2 + 4000 * SMALL.kv_bytes) / 0.85)


def simulate(cache: str, gpu: Gpu, load: Load = LOAD, page_size: int = 1) -> Simulation:
    simulation = Simulation(makers()[cache], gpu, SMALL, load, page_size=page_size)
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
    simulation = Simulation(makers()["triradix-rust"], TIGHT, SMALL, replace(LOAD, requests=0, idle=20))
    simulation.run()
    assert simulation.cache.total_size() == 2 * LOAD.system + 20 * LOAD.history


def test_a_pool_too_small_says_so() -> None:
    tiny = replace(TIGHT, memory=(1e8 * 2 + 100 * SMALL.kv_bytes) / 0.85)
    with pytest.raises(MemoryError, match="6 users do not fit into a pool of"):
        simulate("triradix-rust", tiny)
