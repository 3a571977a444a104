"""Seeded random walks in lock-step with the oracle: thousands of steps a second."""

from __future__ import annotations

import pytest
from implementations import Implementation
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
