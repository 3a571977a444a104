"""Results: their types, and the arrays that hang on them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from implementations import Implementation

import triradix


def is_plain(array: Any, length: int, writable: bool) -> None:
    assert type(array) is np.ndarray
    assert array.dtype == np.int64 and array.dtype.isnative and array.shape == (length,)
    assert array.flags.c_contiguous and array.flags.aligned
    assert array.flags.writeable is writable
    if not writable:
        with pytest.raises(ValueError):
            array[:] = 0


def filled(implementation: Implementation, **config: Any) -> Any:
    cache = implementation.create(**config)
    cache.insert([1, 2, 3, 4], [10, 20, 30, 40])
    return cache


def test_types(implementation: Implementation) -> None:
    cache = filled(implementation)
    match, batch = cache.match_prefix([1, 2]), cache.match_prefix_many([[1, 2], [3]])
    insert, evict = cache.insert([1, 9], [1, 9]), cache.evict(1)
    assert isinstance(match, triradix.MatchResult) and isinstance(batch, triradix.BatchMatchResult)
    assert isinstance(insert, triradix.InsertResult) and isinstance(evict, triradix.EvictResult)
    assert type(match.length) is int and type(insert.length) is int and type(insert.prefix_len) is int
    assert type(evict.num_tokens) is int and type(cache.peek_prefix([1])) is int
    assert type(cache.total_size()) is type(cache.evictable_size()) is type(cache.protected_size()) is int
    assert type(cache.inc_lock_ref(match.node)) is type(cache.dec_lock_ref(match.node)) is int
    assert isinstance(batch.nodes, Sequence)
    assert [node.length for node in batch.nodes] == [2, 0] and batch.nodes[-1].is_root
    with pytest.raises(IndexError):
        batch.nodes[2]
    assert cache.reset() is None and cache.check() is None
    for result in (match, batch, insert, evict):
        assert repr(result)
        for name in [name for name in ("length", "indices", "node") if hasattr(type(result), name)]:
            with pytest.raises((AttributeError, TypeError)):
                setattr(result, name, 1)


@pytest.mark.parametrize("key", [[], [9], [1, 2, 3], [1, 2, 3, 4, 5]], ids=len)
def test_match_indices(implementation: Implementation, key: list[int]) -> None:
    cache = filled(implementation)
    match = cache.match_prefix(key)
    is_plain(match.indices, match.length, writable=False)
    assert match.indices is match.indices
    assert match.indices.tolist() == [10, 20, 30, 40][: match.length]


def test_batch_arrays(implementation: Implementation) -> None:
    cache = filled(implementation)
    for keys in ([], [[1, 2], [], [1, 2, 3, 4]], [[9]]):
        batch = cache.match_prefix_many(keys)
        is_plain(batch.lengths, len(keys), writable=False)
        is_plain(batch.offsets, len(keys) + 1, writable=False)
        is_plain(batch.indices, int(batch.lengths.sum()), writable=False)
        assert batch.lengths is batch.lengths and batch.offsets is batch.offsets and batch.indices is batch.indices
        assert len(batch.nodes) == len(keys)
        assert batch.offsets.tolist() == [0, *np.cumsum(batch.lengths).tolist()]


OWN: dict[str, Callable[[Any], Any]] = {
    "path": lambda cache: cache.path_indices(cache.match_prefix([1, 2, 3, 4]).node, 1),
    "no path": lambda cache: cache.path_indices(cache.match_prefix([1]).node, 7),
    "all": lambda cache: cache.all_indices(),
    "peeks": lambda cache: cache.peek_prefix_many([[1, 2], [3]]),
    "no peeks": lambda cache: cache.peek_prefix_many([]),
    "evicted": lambda cache: cache.evict(3).indices,
    "nothing evicted": lambda cache: cache.evict(0).indices,
    "evicted of a namespace": lambda cache: cache.evict_namespace(None).indices,
}


@pytest.mark.parametrize("name", OWN)
def test_arrays_of_the_callers_own(implementation: Implementation, name: str) -> None:
    """They may be written to, and nobody sees it."""
    cache = filled(implementation)
    array = OWN[name](cache)
    is_plain(array, {"path": 3, "all": 4, "peeks": 2, "evicted": 3, "evicted of a namespace": 4}.get(name, 0), True)
    array[:] = 7
    left = cache.match_prefix([1, 2, 3, 4])
    assert left.indices.tolist() == [10, 20, 30, 40][: left.length]
    cache.check()


def test_read_arrays_outlive_the_pages(implementation: Implementation) -> None:
    cache = filled(implementation)
    match, batch = cache.match_prefix([1, 2, 3]), cache.match_prefix_many([[1, 2], [1]])
    arrays = [match.indices, batch.indices, cache.all_indices()]
    cache.evict(4)
    cache.insert([5, 6, 7, 8], [50, 60, 70, 80])
    assert match.indices.tolist() == [10, 20, 30] and batch.indices.tolist() == [10, 20, 10]
    arrays.append(cache.evict(2).indices)
    cache.reset()
    del cache, match, batch
    gc.collect()
    filled(implementation).insert(list(range(1000)), [-1] * 1000)
    assert [array.tolist() for array in arrays] == [[10, 20, 30], [10, 20, 10], [10, 20, 30, 40], [80, 70]]


def test_results_outlive_the_cache(implementation: Implementation) -> None:
    match, batch = (getattr(filled(implementation), name) for name in ("match_prefix", "match_prefix_many"))
    match, batch = match([1, 2]), batch([[1], [1, 2]])
    gc.collect()
    assert match.indices.tolist() == [10, 20] and match.length == 2
    assert batch.indices.tolist() == [10, 10, 20]
    del match
    gc.collect()
    assert batch.nodes[1].length == 2


def test_read_only_arrays_stay_so(implementation: Implementation) -> None:
    cache = filled(implementation)
    batch = cache.match_prefix_many([[1, 2]])
    for array in (cache.match_prefix([1, 2]).indices, batch.lengths, batch.offsets, batch.indices):
        with pytest.raises(ValueError):
            array.setflags(write=True)


def test_unread_arrays_of_stale_nodes_raise(implementation: Implementation) -> None:
    cache = filled(implementation)
    deep = cache.match_prefix([1, 2, 3, 4])
    shallow, empty = cache.match_prefix([1]), cache.match_prefix([7], start=deep.node)
    batch, lengths = cache.match_prefix_many([[1], [1, 2, 3, 4]]), [1, 4]
    half_read = cache.match_prefix_many([[1], [1, 2, 3, 4]])
    assert half_read.offsets.tolist() == [0, 1, 5]
    cache.evict(1)
    for result in (deep, empty, batch, half_read):
        with pytest.raises(triradix.StaleNodeError):
            result.indices  # noqa: B018
    with pytest.raises(triradix.StaleNodeError):
        batch.offsets  # noqa: B018
    assert half_read.offsets.tolist() == [0, 1, 5]
    assert shallow.indices.tolist() == [10]
    assert (deep.length, empty.length, batch.lengths.tolist()) == (4, 4, lengths)
    cache.insert([1, 2, 3, 4], [10, 20, 30, 40])
    for result in (deep, empty, batch):
        with pytest.raises(triradix.StaleNodeError):
            result.indices  # noqa: B018
    root = cache.match_prefix([])
    cache.reset()
    with pytest.raises(triradix.StaleNodeError):
        root.indices  # noqa: B018


def test_indices_are_read_late(implementation: Implementation) -> None:
    """Splits, merges and growth between the match and the reading change nothing."""
    cache = filled(implementation)
    match = cache.match_prefix([1, 2, 3])
    resumed = cache.match_prefix([3, 4], start=cache.match_prefix([1, 2]).node)
    cache.insert([1, 9], [0, 90])
    cache.insert([1, 2, 3, 8], [0, 0, 0, 80])
    cache.inc_lock_ref(resumed.node)
    cache.evict(1)
    assert match.indices.tolist() == [10, 20, 30]
    assert resumed.indices.tolist() == [30, 40]


def test_stats_are_a_new_dict(implementation: Implementation) -> None:
    cache = filled(implementation)
    one = cache.stats()
    cache.match_prefix([1])
    two = cache.stats()
    assert isinstance(one, Mapping) and one is not two and (one["lookups"], two["lookups"]) == (0, 1)
    names = {"lookups", "lookup_tokens", "hit_tokens", "inserts", "inserted_tokens", "evicted_tokens"}
    assert set(one) == names | {"total_tokens", "nodes", "memory_bytes"}
    assert all(type(value) is int and value >= 0 for value in one.values())
    assert one["memory_bytes"] > 0 and one["nodes"] > 0


def test_events_are_plain(implementation: Implementation) -> None:
    cache = implementation.create(enable_kv_cache_events=True, page_size=2)
    cache.insert([1, 2, 3, 4], [1, 2, 3, 4], ("a", None))
    cache.evict(1)
    cache.reset()
    events = cache.take_events()
    assert type(events) is list and cache.take_events() == []
    stored, removed, cleared = events
    assert stored == triradix.BlockStored(
        stored.block_hashes, None, [1, 2, 3, 4], 2, lora_id=None, medium="GPU", extra_key=("a", None)
    )
    assert removed == triradix.BlockRemoved(stored.block_hashes[1:], medium="GPU")
    assert cleared == triradix.AllBlocksCleared()
    assert all(type(number) is int for number in [*stored.block_hashes, *stored.token_ids, *removed.block_hashes])
    assert all(-(2**63) <= number < 2**63 for number in stored.block_hashes)
    pairs = implementation.create(enable_kv_cache_events=True, bigram=True)
    pairs.insert([1, 2, 3], [1, 2, 3])
    assert pairs.take_events()[0].token_ids == [(1, 2), (2, 3)]


def test_block_hashes_are_a_new_list_of_bytes(implementation: Implementation) -> None:
    cache = filled(implementation)
    node = cache.match_prefix([1, 2]).node
    one, two = cache.block_hashes(node), cache.block_hashes(node)
    assert type(one) is list and one == two and one is not two
    assert all(type(digest) is bytes and len(digest) == 32 for digest in one)
    one.clear()
    assert cache.block_hashes(node) == two


def test_replayed_events_give_the_cached_pages(implementation: Implementation) -> None:
    """An index that follows the events knows exactly what is cached."""
    cache = implementation.create(enable_kv_cache_events=True, page_size=2)
    index: set[int] = set()
    for turn in range(300):
        key = [(turn * turn // (i + 1)) % 3 for i in range(turn % 11)]
        cache.insert(key, key, (None, "x")[turn % 2])
        if turn % 3 == 0:
            cache.evict(turn % 7)
        if turn == 200:
            cache.reset()
        for event in cache.take_events():
            if isinstance(event, triradix.BlockStored):
                assert not index & set(event.block_hashes)
                assert event.parent_block_hash is None or event.parent_block_hash in index
                index |= set(event.block_hashes)
            elif isinstance(event, triradix.BlockRemoved):
                assert index >= set(event.block_hashes)
                index -= set(event.block_hashes)
            else:
                index.clear()
        assert 2 * len(index) == cache.total_size()


def test_printing(implementation: Implementation, capsys: pytest.CaptureFixture[str]) -> None:
    import io

    cache = filled(implementation)
    cache.insert([1, 2, 9], [1, 2, 9], "space")
    cache.insert(list(range(5000)), list(range(5000)))
    assert cache.pretty_print() is None
    printed = capsys.readouterr().out
    file = io.StringIO()
    cache.pretty_print(file)
    cache.pretty_print(file=io.StringIO())
    assert file.getvalue() == printed and "space" in printed and len(printed) < 5000
    assert 0 < len(repr(cache)) < 1000
    empty = implementation.create()
    empty.pretty_print()
    assert repr(empty)
