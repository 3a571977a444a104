"""Making a cache: arguments, what is refused, and that nothing is imported or chosen silently."""

from __future__ import annotations

import array
import inspect
import subprocess
import sys
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from implementations import Implementation

import triradix
from triradix import PrefixKey
from triradix.config import POLICIES

DEFAULTS = {
    "page_size": 1,
    "eviction_policy": "lru",
    "bigram": False,
    "slru_threshold": 2,
    "enable_kv_cache_events": False,
}
METHODS = [name for name in dir(triradix.PrefixCache) if not name.startswith("_")]


def config_of(cache: Any) -> dict[str, Any]:
    return {name: getattr(cache, name) for name in DEFAULTS}


def test_arguments_are_told_as_given(implementation: Implementation) -> None:
    assert config_of(implementation.create()) == DEFAULTS
    other = {
        "page_size": 64,
        "eviction_policy": "slru",
        "bigram": True,
        "slru_threshold": 5,
        "enable_kv_cache_events": True,
    }
    assert config_of(implementation.create(**other)) == other
    for policy in POLICIES:
        assert implementation.create(eviction_policy=policy).eviction_policy == policy
    cache = implementation.create(page_size=np.int16(4), slru_threshold=np.uint8(3))
    assert config_of(cache) == {**DEFAULTS, "page_size": 4, "slru_threshold": 3}
    assert type(cache.page_size) is type(cache.slru_threshold) is int
    for name in DEFAULTS:
        with pytest.raises((AttributeError, TypeError)):
            setattr(cache, name, DEFAULTS[name])


def test_any_size(implementation: Implementation) -> None:
    cache = implementation.create(page_size=10**30, slru_threshold=10**30, eviction_policy="slru")
    assert cache.page_size == cache.slru_threshold == 10**30
    result = cache.insert([1, 2, 3], [1, 2, 3])
    assert (result.length, result.prefix_len, result.node.is_root) == (0, 0, True)
    assert cache.match_prefix([1, 2, 3]).length == cache.peek_prefix([1]) == cache.total_size() == 0
    assert cache.evict(10**40).num_tokens == 0
    for size in (2**31, 2**32, 2**63 - 1, 2**63, 2**64):
        for bigram in (False, True):
            cache = implementation.create(page_size=size, bigram=bigram)
            assert cache.insert([1, 2, 3], [1, 2, 3]).length == 0
    cache = implementation.create(slru_threshold=2**64 + 1, eviction_policy="slru")
    for _ in range(3):
        cache.insert([1], [1])
    cache.insert([2], [2])
    assert cache.evict(1).indices.tolist() == [1]


WRONG_VALUES = [
    ("page_size", 0, "1"),
    ("page_size", -5, "-5"),
    ("page_size", -(10**30), "1"),
    ("page_size", np.int64(0), "1"),
    ("slru_threshold", 0, "1"),
    ("slru_threshold", -1, "1"),
    *(("eviction_policy", "LRU", policy) for policy in POLICIES),
    ("eviction_policy", "", "lru"),
]
WRONG_TYPES = [
    *((name, value) for name in ("page_size", "slru_threshold") for value in (1.0, "1", None, True, np.True_, [1])),
    *((name, value) for name in ("bigram", "enable_kv_cache_events") for value in (0, 1, None, "True", np.True_)),
    *(("eviction_policy", value) for value in (None, 1, b"lru", ["lru"])),
]


@pytest.mark.parametrize("name, value, told", WRONG_VALUES)
def test_wrong_values(implementation: Implementation, name: str, value: Any, told: str) -> None:
    with pytest.raises(ValueError) as caught:
        implementation.create(**{name: value})
    assert name in str(caught.value) and told in str(caught.value)


@pytest.mark.parametrize("name, value", WRONG_TYPES, ids=repr)
def test_wrong_types(implementation: Implementation, name: str, value: Any) -> None:
    with pytest.raises(TypeError) as caught:
        implementation.create(**{name: value})
    assert name in str(caught.value)


def test_arguments_are_by_name_only(implementation: Implementation) -> None:
    with pytest.raises(TypeError):
        implementation.cls(4)
    with pytest.raises(TypeError):
        implementation.create(pagesize=4)


def test_the_class_takes_the_same_arguments(implementation: Implementation) -> None:
    cls = implementation.cls
    assert cls.__name__ == "RadixCache"
    assert config_of(cls()) == DEFAULTS
    assert config_of(cls(page_size=3, bigram=True)) == {**DEFAULTS, "page_size": 3, "bigram": True}
    with pytest.raises(ValueError):
        cls(page_size=0)


@pytest.mark.parametrize("method", METHODS)
def test_methods_and_their_arguments(implementation: Implementation, method: str) -> None:
    """Names, defaults and keyword-only arguments are those of the protocol."""
    theirs = getattr(implementation.cls, method)
    ours = getattr(triradix.PrefixCache, method)
    if isinstance(ours, property):
        return
    if implementation.name in triradix.IMPLEMENTATIONS:
        assert theirs.__doc__ and theirs.__doc__.strip()
    told, expected = (
        [(p.name, p.default, p.kind) for p in list(inspect.signature(function).parameters.values())[1:]]
        for function in (theirs, ours)
    )
    assert told == expected


def test_keywords(implementation: Implementation) -> None:
    cache = implementation.create()
    node = cache.insert(key=[1, 2], values=[1, 2], extra_key="a", priority=1, start=None, inserted_len=0).node
    assert cache.match_prefix(key=[3], extra_key="a", start=node).length == 2
    assert cache.peek_prefix(key=[1], extra_key="a", start=None) == 1
    assert cache.match_prefix_many(keys=[[1]], extra_keys=["a"], threads=1).lengths.tolist() == [1]
    assert cache.peek_prefix_many(keys=[[1]], extra_keys=["a"], threads=None).tolist() == [1]
    assert cache.inc_lock_ref(node=node) == cache.dec_lock_ref(node=node) == 2
    assert cache.path_indices(node=node, start=1).tolist() == [2]
    assert len(cache.block_hashes(node=node)) == 2
    assert cache.evict(num_tokens=1).num_tokens == 1
    assert cache.evict_namespace(extra_key="a", num_tokens=None).num_tokens == 1
    for call in (
        lambda: cache.match_prefix([1], None, node),
        lambda: cache.insert([1], [1], None, 0),
        lambda: cache.match_prefix_many([[1]], None, 1),
        lambda: cache.match_prefix(),
        lambda: cache.insert([1]),
        lambda: cache.match_prefix([1], wrong=1),
        lambda: cache.evict(),
    ):
        with pytest.raises(TypeError):
            call()


def test_numbers_in_all_their_types(implementation: Implementation) -> None:
    cache = implementation.create()

    class Own(int):
        pass

    node = cache.insert([1, 2, 3], [1, 2, 3], priority=np.int8(-3), inserted_len=np.uint64(2**64 - 1)).node
    cache.insert([1], [1], priority=Own(5), inserted_len=Own(1))
    assert cache.path_indices(node, np.uint16(1)).tolist() == [2, 3]
    assert cache.path_indices(node, Own(2)).tolist() == [3]
    assert cache.match_prefix_many([[1]], threads=np.int32(2)).lengths.tolist() == [1]
    assert cache.evict(np.int64(1)).num_tokens == 1
    assert cache.evict_namespace(None, Own(1)).num_tokens == 1
    for wrong in (1.0, "1", True, np.True_, np.float32(1), [1], np.array(1), np.timedelta64(1, "s")):
        for call in (
            lambda wrong=wrong: cache.evict(wrong),
            lambda wrong=wrong: cache.evict_namespace(None, wrong),
            lambda wrong=wrong: cache.insert([1], [1], priority=wrong),
            lambda wrong=wrong: cache.insert([1], [1], inserted_len=wrong),
            lambda wrong=wrong: cache.match_prefix_many([[1]], threads=wrong),
            lambda wrong=wrong: cache.path_indices(cache.match_prefix([1]).node, wrong),
        ):
            with pytest.raises(TypeError):
                call()
    assert cache.total_size() == 1


def test_batches_take_sequences(implementation: Implementation) -> None:
    cache = implementation.create()
    cache.insert([1, 2], [1, 2], "a")
    for keys in ([[1, 2]], ([1, 2],), [(1, 2)], [np.array([1, 2])], [PrefixKey([1, 2])]):
        for names in (["a"], ("a",), [("a", None)]):
            assert cache.match_prefix_many(keys, names).lengths.tolist() == [2]
            assert cache.peek_prefix_many(keys, names).tolist() == [2]
    for wrong in (
        array.array("I"), array.array("I", [1]), b"", b"ab", bytearray(b"a"), memoryview(b"ab"), np.array([[1, 2]]),
        np.empty(0, np.int64), "", "ab", {1: 2}, {1}, iter([[1]]), 5, object(),
    ):  # fmt: skip
        for call in (cache.match_prefix_many, cache.peek_prefix_many):
            with pytest.raises(TypeError):
                call(wrong)
            with pytest.raises(TypeError):
                call([[1, 2]], wrong)
    with pytest.raises(TypeError):
        cache.match_prefix_many(None)
    for names in ([], ["a", "a"]):
        with pytest.raises(ValueError):
            cache.match_prefix_many([[1]], names)
    assert cache.stats()["lookups"] == 15


def test_unknown_implementation() -> None:
    with pytest.raises(ValueError) as caught:
        triradix.create("lisp")
    assert all(name in str(caught.value) for name in triradix.IMPLEMENTATIONS)
    for wrong in (None, 1, b"rust"):
        with pytest.raises(TypeError):
            triradix.create(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        triradix.create()  # type: ignore[call-arg]


def test_nothing_stands_in_for_what_is_missing() -> None:
    """Without its compiled modules an implementation raises ImportError, and says what to do."""
    script = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("triradix.cython_impl.", "triradix.rust_impl.", "_triradix_rust")):
            raise ModuleNotFoundError(f"no module named {name}", name=name)
sys.meta_path.insert(0, Missing())
import triradix
for name in ("cython", "rust"):
    for _ in range(2):
        try:
            triradix.create(name)
        except ImportError as error:
            text = str(error)
            assert any(word in text for word in ("install", "build")), text
        else:
            raise AssertionError(f"{name} came from somewhere")
triradix.create("reference")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_public_names() -> None:
    names = """create IMPLEMENTATIONS PrefixCache PrefixKey MatchResult BatchMatchResult InsertResult EvictResult Node
    StaleNodeError IntegrityError BlockStored BlockRemoved AllBlocksCleared""".split()
    assert sorted(triradix.__all__) == sorted(names)
    assert triradix.IMPLEMENTATIONS == ("reference", "cython", "rust")
    assert issubclass(triradix.StaleNodeError, LookupError) and issubclass(triradix.IntegrityError, AssertionError)


def test_a_str_subclass_counts_by_what_it_stores(implementation: Implementation) -> None:
    class Shouting(str):
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("compared")

        __hash__ = str.__hash__

    assert implementation.create(eviction_policy=Shouting("lfu")).eviction_policy == "lfu"
    with pytest.raises(ValueError, match="unknown eviction_policy"):
        implementation.create(eviction_policy=Shouting("lifo"))


def test_making_a_cache_again_does_not_empty_it(implementation: Implementation) -> None:
    cache = implementation.create(page_size=2)
    cache.insert([1, 2], [1, 2])
    with suppress(TypeError):
        cache.__init__(page_size=5)
    assert (cache.page_size, cache.total_size()) == (2, 2)
