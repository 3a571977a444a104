"""Seeded random walks in lock-step with the oracle: thousands of steps a second."""

from __future__ import annotations

import random

import pytest
from implementations import Implementation
from lockstep import Lockstep
from walks import walk

PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_random_walks(implementation: Implementation, part: int, request: pytest.FixtureRequest) -> None:
    option = request.config.getoption
    thorough = option("--thorough")
    steps = 200 if thorough else 60
    if option("--walk-seed") is not None:
        seeds = [option("--walk-seed")] if part == 0 else []
    else:
        seeds = list(range(option("--walks") or (6000 if thorough else 300)))[part::PARTS]
    for seed in seeds:
        walk(implementation, seed, steps, make_small=not option("--no-shrink"))


@pytest.mark.parametrize("policy", ["lru", "mru", "lfu", "priority"])
@pytest.mark.parametrize("reads_between", [0, 200])
def test_one_run_with_very_many_locks(implementation: Implementation, policy: str, reads_between: int) -> None:
    """More than a run has room for: it is split and joined for their number alone, while reads ended everywhere in it.

    Other runs are as old as one or another of its pages: the order of eviction shows what became of each read.
    """
    pair = Lockstep(implementation, {"eviction_policy": policy})
    chance = random.Random(1)
    key = list(range(400))
    pair.do("insert", key=key, values=0)
    nodes = []
    for end in range(len(key) - 2, 0, -2):
        nodes.append(str(len(pair.steps)))
        pair.do("match", key=key[:end])
        pair.do("insert", key=[1000 + end], values=1000 + end)
    chance.shuffle(nodes)
    for node in nodes:
        pair.do("lock", node=node)
    for _ in range(reads_between):
        pair.do("match", key=key[: chance.randrange(1, len(key))])
    pair.do("check")
    for node in nodes:
        pair.do("unlock", node=node)
        if chance.random() < 0.1:
            pair.do("evict", n=1)
    pair.do("check")
    for _ in range(400):
        pair.do("evict", n=2)
    pair.do("check")
