"""A batch that several cores share does what its elements do one after the other: a cache and its twin."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from implementations import Implementation

from triradix import PrefixKey

POLICIES = ("lru", "lfu", "fifo", "mru", "filo", "priority", "slru")


def form(tokens: list[int], choose: random.Random) -> Any:
    kind = choose.randint(0, 3)
    if kind == 0:
        return tokens
    if kind == 1:
        return PrefixKey(tokens)
    return np.array(tokens, np.int64 if kind == 2 else np.uint32)


def public(stats: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in stats.items() if name not in ("nodes", "memory_bytes")}


@pytest.mark.parametrize("policy", POLICIES)
def test_as_one_after_the_other(implementation: Implementation, policy: str, thorough: bool) -> None:
    for seed in range(40 if thorough else 3):
        choose = random.Random(f"{policy} {seed}")
        config = {"eviction_policy": policy, "page_size": choose.choice([1, 1, 2]), "bigram": choose.random() < 0.3}
        many, twin = implementation.create(**config), implementation.create(**config)
        # One long path, to be read up to each of its pages, and branches of it.
        trunk = [choose.randint(0, 9) for _ in range(400)]

        def key(trunk: list[int] = trunk, choose: random.Random = choose) -> list[int]:
            cut = choose.choice([choose.randint(0, 400), 5 * choose.randint(0, 20)])
            return trunk[:cut] + [10] * choose.choice([0, 0, 2, 6])

        for _ in range(4):
            for _ in range(choose.randint(1, 12)):
                tokens, name, priority = key(), choose.choice([None, "a"]), choose.randint(0, 2)
                for cache in (many, twin):
                    cache.insert(tokens, range_of(tokens), name, priority=priority)
            keys = [form(key(), choose) for _ in range(choose.choice([150, 400, 700]))]
            names = choose.choice([None, [choose.choice([None, "a", "b"]) for _ in keys]])
            batch = many.match_prefix_many(keys, names, threads=choose.choice([None, 2, 3]))
            singles = [twin.match_prefix(key, names[i] if names else None) for i, key in enumerate(keys)]
            assert batch.lengths.tolist() == [single.length for single in singles]
            assert batch.indices.tolist() == [slot for single in singles for slot in single.indices.tolist()]
            first = {}
            for i, (node, single) in enumerate(zip(batch.nodes, singles, strict=True)):
                assert (node.length, node.extra_key) == (single.node.length, single.node.extra_key)
                # The same page here if and only if there.
                j = first.setdefault(node, i)
                assert single.node == singles[j].node and (j == i or single.node in {singles[j].node})
            assert len({single.node for single in singles}) == len(first)
            assert many.peek_prefix_many(keys, names, threads=2).tolist() == batch.lengths.tolist()
            assert public(many.stats()) == public(twin.stats())
            many.check()
            freed = choose.randint(0, many.total_size() // 3)
            assert many.evict(freed).indices.tolist() == twin.evict(freed).indices.tolist()
        assert many.evict(10**9).indices.tolist() == twin.evict(10**9).indices.tolist()
        many.check()


def range_of(tokens: list[int]) -> list[int]:
    return list(range(len(tokens)))


@pytest.mark.parametrize("threads", [None, 1, 2, 10**30])
def test_one_bad_key_among_many(implementation: Implementation, threads: int | None) -> None:
    cache = implementation.create()
    good = np.arange(30, dtype=np.int64)
    cache.insert(good, good)
    before = cache.stats()
    for at in (0, 17, 299):
        for wrong, error in ((2**32, ValueError), (-5, ValueError), ("text", TypeError)):
            bad: Any = np.array([1, 2, wrong], np.int64) if isinstance(wrong, int) else wrong
            keys: list[Any] = [good] * 300
            keys[at] = bad
            for later in (290, 299):  # of several the first is named
                if later > at:
                    keys[later] = np.array([2**40], np.int64)
            for call in (cache.match_prefix_many, cache.peek_prefix_many):
                with pytest.raises(error, match=rf"^keys\[{at}\]: "):
                    call(keys, threads=threads)
                # Before what is wrong with the other arguments.
                with pytest.raises(error, match=rf"^keys\[{at}\]: "):
                    call(keys, ["a", 5], threads=0)
    with pytest.raises(TypeError, match=r"^extra_keys\[7\]: "):
        cache.match_prefix_many([good] * 300, [None] * 7 + [5] + [None] * 292, threads=threads)
    with pytest.raises(ValueError, match="threads"):
        cache.match_prefix_many([good] * 300, threads=0)
    assert cache.stats() == before


def test_more_than_one_stretch(implementation: Implementation) -> None:
    """More keys than are looked up in one piece."""
    cache = implementation.create()
    order = np.random.default_rng(1).permutation(20_000)
    for token in range(20_000):
        cache.insert([token], [token])
    keys = [np.array([token], np.int64) for token in order]
    assert cache.match_prefix_many(keys, threads=2).indices.tolist() == order.tolist()
    assert cache.evict(20_000).indices.tolist() == order.tolist()
    with pytest.raises(ValueError, match=r"^keys\[20000\]: "):
        cache.match_prefix_many([*keys, np.array([-1])], threads=2)
    assert cache.stats()["lookups"] == 20_000
