"""Nodes: what a handle says, when two are equal, when one is stale, and what may not be done with it."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from implementations import Implementation

import triradix
from triradix import StaleNodeError

USES: dict[str, Callable[[Any, Any], Any]] = {
    "is_root": lambda cache, node: node.is_root,
    "extra_key": lambda cache, node: node.extra_key,
    "match": lambda cache, node: cache.match_prefix([1], start=node),
    "match nothing": lambda cache, node: cache.match_prefix([], start=node),
    "peek": lambda cache, node: cache.peek_prefix([1], start=node),
    "insert": lambda cache, node: cache.insert([1], [1], start=node),
    "insert nothing": lambda cache, node: cache.insert([], [], start=node),
    "lock": lambda cache, node: cache.inc_lock_ref(node),
    "unlock": lambda cache, node: cache.dec_lock_ref(node),
    "path": lambda cache, node: cache.path_indices(node),
    "path beyond": lambda cache, node: cache.path_indices(node, 10**20),
    "hashes": lambda cache, node: cache.block_hashes(node),
}


def test_what_a_node_says(implementation: Implementation) -> None:
    cache = implementation.create(page_size=2)
    root = cache.match_prefix([9]).node
    node = cache.insert([1, 2, 3, 4, 5], [1] * 5).node
    salted = cache.insert([1, 2], [1, 2], ("a", "salt")).node
    assert (root.length, root.is_root, root.extra_key) == (0, True, None)
    assert (node.length, node.is_root, node.extra_key) == (4, False, None)
    assert (salted.length, salted.is_root, salted.extra_key) == (2, False, ("a", "salt"))
    assert cache.match_prefix([7], "b").node.extra_key == ("b", None)
    assert cache.match_prefix([7], (None, None)).node.extra_key is None
    assert cache.match_prefix([7], (None, None)).node == root
    assert cache.match_prefix([7], "").node.extra_key == ("", None)
    for one in (root, node, salted):
        assert isinstance(one, triradix.Node)
        assert type(one.length) is int and type(one.is_root) is bool
        assert repr(one)
        for attribute in ("length", "is_root", "extra_key"):
            with pytest.raises((AttributeError, TypeError)):
                setattr(one, attribute, 1)


@pytest.mark.parametrize("use", USES)
def test_a_stale_node_raises(implementation: Implementation, use: str) -> None:
    cache = implementation.create()
    node = cache.insert([1, 2, 3], [1, 2, 3]).node
    root = cache.match_prefix([]).node
    kept = cache.match_prefix([1, 2]).node
    cache.evict(1)
    with pytest.raises(StaleNodeError) as caught:
        USES[use](cache, node)
    assert isinstance(caught.value, LookupError) and str(caught.value)
    cache.insert([1, 2, 3], [1, 2, 3])
    with pytest.raises(StaleNodeError):
        USES[use](cache, node)
    assert cache.path_indices(kept).tolist() == [1, 2]
    cache.reset()
    cache.insert([1, 2, 3], [1, 2, 3])
    for one in (node, kept, root):
        with pytest.raises(StaleNodeError):
            USES[use](cache, one)
    assert (node.length, kept.length, root.length) == (3, 2, 0)
    assert repr(node) and repr(root)
    assert node == node and hash(node) == hash(node) and node != kept and kept != root
    assert (cache.total_size(), cache.protected_size(), cache.stats()["lookups"]) == (3, 0, 0)
    cache.check()


@pytest.mark.parametrize("use", [use for use in USES if use not in ("is_root", "extra_key")])
@pytest.mark.parametrize(
    "stranger",
    [None, 5, "node", object(), (1, 2), triradix.Node],
    ids=["None", "int", "str", "object", "tuple", "class"],
)
def test_what_is_no_node(implementation: Implementation, use: str, stranger: Any) -> None:
    if stranger is None and use.split()[0] in ("match", "peek", "insert"):
        return  # start=None means no start
    cache = implementation.create()
    cache.insert([1], [1])
    with pytest.raises(TypeError):
        USES[use](cache, stranger)
    assert cache.total_size() == cache.evictable_size() == 1


@pytest.mark.parametrize("use", [use for use in USES if use not in ("is_root", "extra_key")])
@pytest.mark.parametrize("name", [*triradix.IMPLEMENTATIONS, "oracle:RadixCache"])
def test_a_node_of_another_cache(implementation: Implementation, use: str, name: str) -> None:
    try:
        other = Implementation(name).create()
    except (ImportError, AttributeError):
        assert name != implementation.name  # what is not built cannot be mixed in; its own tests fail
        other = implementation.create()
    cache = implementation.create()
    cache.insert([1], [1])
    for node in (other.insert([1], [1]).node, other.match_prefix([]).node):
        with pytest.raises(ValueError):
            USES[use](cache, node)
    stale = other.insert([2], [2]).node
    other.reset()
    with pytest.raises(ValueError):
        USES[use](cache, stale)
    assert cache.total_size() == cache.evictable_size() == 1
    mine = cache.match_prefix([1]).node
    assert mine != stale and not mine == stale


def test_equality(implementation: Implementation) -> None:
    one, two = implementation.create(), implementation.create()
    a, b = (cache.insert([1, 2], [1, 2]).node for cache in (one, two))
    assert a != b and not a == b
    assert one.match_prefix([]).node != two.match_prefix([]).node
    again = one.match_prefix([1, 2, 3]).node
    assert a == again and not a != again and hash(a) == hash(again) and len({a, again}) == 1
    for thing in (None, 2, "x", (1, 2), object()):
        assert a != thing and not a == thing
    with pytest.raises(TypeError):
        a < again  # noqa: B015
    assert one.match_prefix([]).node == one.match_prefix([5]).node
    assert one.match_prefix([]).node != one.match_prefix([], "x").node
    assert hash(one.match_prefix([], "x").node) == hash(one.match_prefix([3], ("x", None)).node)


def test_equality_through_every_split_and_merge(implementation: Implementation) -> None:
    """Every page of one run has its handles; branches come and go at each page in turn."""
    cache = implementation.create()
    key = list(range(40))
    cache.insert(key, key)
    nodes = [cache.match_prefix(key[:n]).node for n in range(41)]
    hashes = list(map(hash, nodes))
    assert len(set(nodes)) == 41
    for at in [*range(0, 40, 3), *range(39, 0, -2)]:
        branch = cache.insert([*key[:at], 99], [0] * (at + 1)).node
        for n in (at, 40, at // 2):
            assert cache.match_prefix(key[:n]).node == nodes[n]
        lock = cache.inc_lock_ref(nodes[40])
        assert lock == 40
        assert cache.evict(99).num_tokens == 1
        assert cache.dec_lock_ref(cache.match_prefix(key).node) == 40
        with pytest.raises(StaleNodeError):
            cache.path_indices(branch)
        assert [cache.path_indices(node).tolist() for node in nodes] == [key[:n] for n in range(41)]
        assert list(map(hash, nodes)) == hashes
        cache.check()


def test_handles_never_come_back(implementation: Implementation) -> None:
    cache = implementation.create()
    dead: list[Any] = []
    for turn in range(200):
        node = cache.insert([1, 2], [turn, turn]).node
        parent = cache.match_prefix([1]).node
        assert all(node != old and parent != old for old in dead[-10:])
        dead += [node, parent]
        cache.evict(2)
    assert len(set(dead)) == 400
    cache.insert([1, 2], [1, 2])
    for node in dead:
        with pytest.raises(StaleNodeError):
            cache.path_indices(node)


def test_a_root_outlives_its_pages(implementation: Implementation) -> None:
    cache = implementation.create()
    root = cache.match_prefix([], "n").node
    for turn in range(5):
        assert cache.insert([1, 2], [turn, turn], start=root).length == 2
        assert cache.match_prefix([1, 2], start=root).indices.tolist() == [turn, turn]
        assert cache.evict_namespace("n").num_tokens == 2
        assert root.is_root and root == cache.match_prefix([], "n").node
    assert cache.block_hashes(root) == [] and cache.path_indices(root).tolist() == []


def test_a_node_keeps_its_cache_alive(implementation: Implementation) -> None:
    node = implementation.create().insert([1, 2], [1, 2]).node
    gc.collect()
    assert (node.length, node.is_root, node.extra_key) == (2, False, None)
    root = implementation.create().match_prefix([]).node
    gc.collect()
    assert root.is_root


def test_caches_are_freed(implementation: Implementation) -> None:
    """Dropping the cache and what came from it frees all, also when handles refer back to it."""
    cache = implementation.create()
    try:
        gone = weakref.ref(cache)
    except TypeError:
        pytest.fail("a cache must take weak references")
    result = cache.match_prefix(cache.insert([1, 2], [1, 2]).node.length * [1])
    batch = cache.match_prefix_many([[1]])
    del cache, result, batch
    gc.collect()
    assert gone() is None


COPIES: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, pickle.dumps, lambda x: pickle.dumps(x, 0)]


@pytest.mark.parametrize("how", COPIES, ids=["copy", "deepcopy", "pickle", "pickle 0"])
def test_nothing_is_copied_or_pickled(implementation: Implementation, how: Callable[[Any], Any]) -> None:
    cache = implementation.create()
    inserted, matched = cache.insert([1, 2], [1, 2]), cache.match_prefix([1])
    things = [cache, inserted, matched, matched.node, cache.match_prefix_many([[1]]), cache.match_prefix([]).node]
    for thing in [*things, cache.evict(1)]:
        with pytest.raises(TypeError) as caught:
            how(thing)
        assert str(caught.value)
    assert cache.total_size() == 1
