"""No depth is too deep: chains of 100,000 pages on small stacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from implementations import Implementation


@pytest.mark.parametrize(
    "shape, end, depth",
    [
        ("comb", "drop", 100_000),
        ("comb", "evict", 10_000),
        ("prefixes", "reset", 100_000),
        ("prefixes", "namespace", 20_000),
    ],
)
def test_deep_chains(isolated: Any, shape: str, end: str, depth: int, thorough: bool) -> None:
    isolated("depth.py", str(100_000 if thorough else depth), shape, end)


@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("bigram", [False, True])
def test_one_long_key(implementation: Implementation, page_size: int, bigram: bool) -> None:
    """A key of 100,000 pages is inserted at once, split at many places, merged again and evicted."""
    cache = implementation.create(page_size=page_size, bigram=bigram)
    count = 100_000 if page_size == 1 else 10_000
    key = np.arange(count * page_size + bigram, dtype=np.uint32)
    values = key.astype(np.int64)
    assert cache.insert(key, values).length == count * page_size
    for at in range(1, count, count // 40):
        branch = np.append(key[: at * page_size + bigram], np.full(page_size, 2**32 - 1, np.uint32))
        assert cache.insert(branch, np.zeros(len(branch), np.int64)).prefix_len == at * page_size
    cache.check()
    deepest = cache.match_prefix(key)
    assert np.array_equal(deepest.indices, values[: count * page_size])
    assert cache.inc_lock_ref(deepest.node) == count * page_size
    assert cache.evict(10**9).num_tokens == cache.stats()["evicted_tokens"] > 0
    cache.check()
    assert cache.dec_lock_ref(deepest.node) == count * page_size
    freed = cache.evict(10**9).indices.reshape(count, page_size)[::-1].ravel()
    assert np.array_equal(freed, values[: count * page_size])
    cache.check()
