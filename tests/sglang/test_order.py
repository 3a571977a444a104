"""The order of ``dfs-weight``, against SGLang's own."""

from __future__ import annotations

import random

import pytest
from scheduler import MakeCache, Scheduler
from sglang.srt.mem_cache.common import match_kv_cache


@pytest.mark.parametrize("seed", range(30))
def test_order_is_that_of_sglang(ours: MakeCache, theirs: MakeCache, seed: int) -> None:
    rng = random.Random(seed)
    cached = [rng.choices(range(3), k=rng.randrange(1, 12)) for _ in range(8)]
    # As many requests at each place as to leave no two subtrees of one weight.
    prompts = [prompt for index, prompt in enumerate(cached) for _ in range(2**index)]
    rng.shuffle(prompts)
    orders = []
    for make in (ours, theirs):
        scheduler = Scheduler(make, 4000)
        for prompt in cached:
            req = scheduler.request(prompt)
            scheduler.admit(req)
            scheduler.prefill(req)
            scheduler.finish(req)
        waiting = [scheduler.request(prompt) for prompt in prompts]
        for req in waiting:
            match_kv_cache(req, scheduler.cache)
        orders.append(scheduler.cache.dfs_weight_order([req.last_node for req in waiting]))
    assert sorted(orders[0]) == list(range(len(prompts)))
    assert [prompts[index] for index in orders[0]] == [prompts[index] for index in orders[1]]


def test_roots_and_nothing(ours: MakeCache) -> None:
    scheduler = Scheduler(ours)
    assert scheduler.cache.dfs_weight_order([]) == []
    waiting = [scheduler.request([5, 6, 7]) for _ in range(3)]
    for req in waiting:
        match_kv_cache(req, scheduler.cache)
    assert scheduler.cache.dfs_weight_order([req.last_node for req in waiting]) == [0, 1, 2]
