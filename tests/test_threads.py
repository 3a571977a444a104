"""One cache, many threads, every method: it stays sound, and no slot is lost, doubled or given for another token."""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from implementations import Implementation

import triradix
from triradix import PrefixKey, StaleNodeError

TOKENS = 1000  # a slot is TOKENS * (its number) + its token, so each slot is given once and names its token


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run ``work(0) … work(count - 1)`` at the same time; the first exception of any is raised."""
    errors: list[BaseException] = []
    together = threading.Barrier(count)

    def guarded(number: int) -> None:
        together.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Hammer:
    """Random calls of one thread; books what slots it gave and what it got back."""

    def __init__(self, cache: Any, number: int) -> None:
        self.cache = cache
        self.random = random.Random(number)
        self.number = number
        self.made = 0
        self.given: list[int] = []
        self.back: list[int] = []
        self.locks: list[Any] = []
        self.nodes: list[tuple[list[int], Any, Any]] = []

    def key(self) -> list[int]:
        size, choose = self.cache.page_size, self.random
        return [choose.randint(1, 3) for _ in range(choose.randint(0, 6) * size)] + [9] * choose.randint(0, 1)

    def name(self) -> Any:
        return self.random.choice([None, None, "a", ("a", "b")])

    def slots(self, tokens: list[int]) -> list[int]:
        first = self.number * 10**7 + self.made
        self.made += len(tokens)
        return [(first + i) * TOKENS + token for i, token in enumerate(tokens)]

    def insert(self, key: list[int], path: list[int], node: Any, name: Any) -> None:
        values = self.slots(key)
        result = self.cache.insert(key, values, name, priority=self.random.randint(0, 3), start=node)
        begin = len(path)
        self.given += values
        assert (
            begin
            <= result.prefix_len
            <= result.length
            == begin + len(key) // self.cache.page_size * self.cache.page_size
        )
        self.back += values[: result.prefix_len - begin] + values[result.length - begin :]
        self.nodes.append(((path + key)[: result.length], name, result.node))

    def one(self) -> None:
        cache, choose = self.cache, self.random
        what = choose.randint(0, 15)
        if what <= 2:
            self.insert(self.key(), [], None, self.name())
        elif what == 3 and self.nodes:
            path, name, node = choose.choice(self.nodes[-5:])
            self.insert(self.key(), path, node, name)
        elif what <= 5:
            key, name = self.key(), self.name()
            match = cache.match_prefix(PrefixKey(key) if choose.random() < 0.3 else key, name)
            assert match.length <= len(key) and match.node.length == match.length
            self.nodes.append((key[: match.length], name, match.node))
            assert (match.indices % TOKENS).tolist() == key[: match.length]
        elif what == 6:
            keys, name = [self.key() for _ in range(5)], self.name()
            batch = cache.match_prefix_many(keys, [name] * 5, threads=choose.choice([None, 1, 2]))
            expected = [token for key, n in zip(keys, batch.lengths.tolist(), strict=True) for token in key[:n]]
            assert (batch.indices % TOKENS).tolist() == expected
        elif what == 7:
            lengths = cache.peek_prefix_many([self.key() for _ in range(5)])
            assert (lengths % cache.page_size == 0).all() and cache.peek_prefix(self.key()) >= 0
        elif what == 8 and self.nodes:
            node = choose.choice(self.nodes[-5:])[2]
            cache.inc_lock_ref(node)
            self.locks.append(node)
        elif what == 9 and self.locks:
            assert cache.dec_lock_ref(self.locks.pop(choose.randrange(len(self.locks)))) >= 0
        elif what <= 11:
            self.back += cache.evict(choose.randint(0, 12)).indices.tolist()
        elif what == 12:
            self.back += cache.evict_namespace(self.name(), choose.choice([None, 1, 5])).indices.tolist()
        elif what == 13 and self.nodes:
            path, name, node = choose.choice(self.nodes[-5:])
            assert node.length == len(path)
            assert (cache.path_indices(node) % TOKENS).tolist() == path
            assert len(cache.block_hashes(node)) * cache.page_size == len(path)
            assert node.extra_key == ((name, None) if isinstance(name, str) else name)
        elif what == 14:
            slots = cache.all_indices().tolist()
            assert len(set(slots)) == len(slots)
            assert cache.stats()["total_tokens"] >= 0 and cache.total_size() >= 0
            assert repr(cache)
        elif what == 15 and choose.random() < 0.2:
            cache.check()
        del self.nodes[:-20]

    def run(self, calls: int) -> None:
        for _ in range(calls):
            try:
                self.one()
            except StaleNodeError:
                pass  # another thread has evicted it
        for node in self.locks:
            self.cache.dec_lock_ref(node)


CONFIGS = [
    {},
    {"page_size": 2, "eviction_policy": "lfu"},
    {"page_size": 4, "eviction_policy": "slru", "enable_kv_cache_events": True},
    {"eviction_policy": "priority", "enable_kv_cache_events": True},
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_hammer(implementation: Implementation, config: dict[str, Any], thorough: bool) -> None:
    cache = implementation.create(**config)
    hammers = [Hammer(cache, number) for number in range(6)]
    in_threads(6, lambda number: hammers[number].run(20_000 if thorough else 700))
    cache.check()
    assert cache.protected_size() == 0
    left = cache.all_indices().tolist()
    given = Counter(slot for hammer in hammers for slot in hammer.given)
    back = Counter(slot for hammer in hammers for slot in hammer.back)
    assert given == back + Counter(left) and max(given.values()) == 1
    assert cache.total_size() == len(left)
    replay(cache)
    assert sorted(cache.evict(10**9).indices.tolist()) == sorted(left)
    cache.check()


def replay(cache: Any) -> None:
    """The events of all threads are in an order that makes sense, and lead to what is cached."""
    index: set[int] = set()
    for event in cache.take_events():
        if isinstance(event, triradix.BlockStored):
            assert event.parent_block_hash is None or event.parent_block_hash in index
            assert not index & set(event.block_hashes)
            index |= set(event.block_hashes)
        elif isinstance(event, triradix.BlockRemoved):
            assert index >= set(event.block_hashes)
            index -= set(event.block_hashes)
    if cache.enable_kv_cache_events:
        assert len(index) * cache.page_size == cache.total_size()


def test_resets_in_between(implementation: Implementation) -> None:
    cache = implementation.create(enable_kv_cache_events=True)

    def work(number: int) -> None:
        hammer = Hammer(cache, number)
        for turn in range(400):
            try:
                hammer.one()
            except (StaleNodeError, AssertionError) as error:
                # after a reset the slots of a path may have gone between two calls, but never be another token's
                if isinstance(error, AssertionError) and type(error) is not AssertionError:
                    raise
            if number == 0 and turn % 20 == 0:
                cache.reset()
                cache.take_events()

    in_threads(4, work)
    cache.check()
    cache.reset()
    assert (cache.total_size(), cache.protected_size()) == (0, 0)
    cache.check()


def test_equal_locks_from_many_threads(implementation: Implementation) -> None:
    cache = implementation.create()
    key = list(range(50))
    nodes = [cache.insert(key, key).node, *(cache.match_prefix(key[:n]).node for n in (10, 25, 25, 40))]

    def work(number: int) -> None:
        choose = random.Random(number)
        for _ in range(300):
            node = choose.choice(nodes)
            cache.inc_lock_ref(node)
            assert cache.protected_size() >= node.length
            cache.insert([*key[: choose.randint(0, 49)], 99], [0] * 50) if choose.random() < 0 else None
            cache.dec_lock_ref(node)

    in_threads(5, work)
    assert (cache.protected_size(), cache.evictable_size()) == (0, 50)
    for node in nodes:
        with pytest.raises(ValueError):
            cache.dec_lock_ref(node)
    cache.check()


def test_batches_beside_other_threads(implementation: Implementation) -> None:
    """While one thread matches batches on several cores, others insert below the same pages and evict them."""
    cache = implementation.create(page_size=4)
    keys = [[i % 7, i % 3, i % 2, 0] * 8 for i in range(400)]
    arrays = [np.array(key, np.uint32) for key in keys]

    def work(number: int) -> None:
        for turn in range(15):
            if number < 2:
                batch = cache.match_prefix_many(arrays, threads=2)
                assert all(length % 4 == 0 and length <= 32 for length in batch.lengths.tolist())
                assert [node.length for node in batch.nodes] == batch.lengths.tolist()
                with suppress(StaleNodeError):  # evicted meanwhile
                    assert batch.offsets[-1] == batch.lengths.sum()
            elif number == 2:
                for key in keys[turn::5]:
                    cache.insert(key, key)
            else:
                cache.evict(40)

    in_threads(4, work)
    cache.check()
    for key, length in zip(keys, cache.peek_prefix_many(arrays, threads=2).tolist(), strict=True):
        match = cache.match_prefix(key)
        assert match.length == length and match.indices.tolist() == key[:length]


def test_a_batch_is_its_elements_in_order(implementation: Implementation) -> None:
    """However many threads share a batch: recency is that of the elements one after the other."""
    for threads in (None, 1, 2, 5):
        cache = implementation.create()
        for token in range(3000):
            cache.insert([token], [token])
        order = random.Random(5).sample(range(3000), 3000)
        cache.match_prefix_many([[token] for token in order], threads=threads)
        assert cache.evict(3000).indices.tolist() == order


def test_interrupted_batches(isolated: Any) -> None:
    isolated("interrupt.py")


@pytest.mark.parametrize(
    "group", ["batches", "numbers", "namespaces", "keys", "objects", "log to stderr", "log to logging"]
)
def test_the_interpreter_ends_beside_calls(isolated: Any, group: str) -> None:
    for _ in range(3):
        assert isolated("shutdown.py", group, silent=True) == "the end\n"


def test_sub_interpreters_are_refused(isolated: Any) -> None:
    isolated("subinterpreter.py")


def test_writers_beside_long_batches(implementation: Implementation) -> None:
    """Who holds the tree waits for nobody's GIL: calls that change it and make many objects, beside readers of it."""
    cache = implementation.create(enable_kv_cache_events=True)
    keys = [np.array([i % 50, i, *range(30)], np.uint32) for i in range(2000)]
    done = threading.Event()

    def work(number: int) -> None:
        if number < 2:
            while not done.is_set():
                cache.match_prefix_many(keys, threads=1 + number)
            return
        try:
            for turn in range(40):
                node = cache.insert(keys[turn], range_of(keys[turn])).node
                cache.block_hashes(node)
                cache.take_events()
                cache.all_indices()
                cache.evict(turn % 20)
                cache.stats()
                repr(cache)
        finally:
            done.set()

    in_threads(3, work)
    cache.check()


def range_of(key: Any) -> list[int]:
    return list(range(len(key)))


def test_many_caches_beside_each_other(implementation: Implementation) -> None:
    """As many trees as a host has data-parallel ranks: each has its own state, whoever else works meanwhile."""
    caches = [implementation.create() for _ in range(64)]
    key = np.arange(100)

    def work(number: int) -> None:
        for turn in range(3):
            for rank, cache in enumerate(caches[number::4]):
                own = rank + turn
                cache.insert(key[: 10 + own], key[: 10 + own] + 1000 * own)
                batch = cache.match_prefix_many([key[:own]] * 150, threads=2)
                assert batch.lengths.tolist() == [own] * 150
                assert cache.evict(5).num_tokens == 5

    in_threads(4, work)
    for number, cache in enumerate(caches):
        assert cache.stats()["lookups"] == 450
        assert cache.total_size() == 10 + number // 4 + 2 - 5, number
        cache.check()
