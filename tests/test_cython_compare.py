"""The loops of the Cython tree for every kind of processor, and keys that another thread changes meanwhile."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from triradix import create

compare: Any = importlib.import_module("triradix.cython_impl.compare")

LENGTHS = (1, 2, 7, 8, 9, 15, 31, 32, 33, 63, 64, 65, 100, 128, 200, 257)


@pytest.fixture(params=[0, 1, 2], ids=["anywhere", "avx2", "avx512"])
def loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where a processor lacks them, the best that it has once more: nothing else can run there."""
    assert compare.use_loops(request.param) <= request.param
    yield
    compare.use_loops(2)


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.int64, np.uint64])
def test_every_loop_finds_where_keys_differ(loops: None, dtype: type) -> None:
    for length in LENGTHS:
        cache = create("cython")
        key: Any = np.arange(5, 5 + length).astype(dtype)
        slots = np.arange(length) + (2**31 if length % 2 else 2**32)
        cache.insert(key, slots)
        assert cache.match_prefix(key).indices.tolist() == slots.tolist()
        for position in {0, 1, length // 2, length - 2, length - 1} & set(range(length)):
            other = key.copy()
            other[position] += 1000
            assert cache.peek_prefix(other) == position
            assert cache.match_prefix(np.concatenate((key, other))).length == length
        cache.check()


@pytest.mark.parametrize("step", [1, 3], ids=["consecutive", "in-no-order"])
@pytest.mark.parametrize("first", [5, 2**32 - 9, -20, 2**63 - 1100], ids=str)
def test_every_loop_hands_slots_over(loops: None, first: int, step: int) -> None:
    """Page by page from the end on, in token order within a page, whether a run goes as a whole or in parts."""
    for length in LENGTHS:
        slots = first + np.arange(length) * step
        for page in {1, 4} if length % 4 == 0 else {1}:
            cache = create("cython", page_size=page)
            cache.insert(np.arange(length), slots)
            assert cache.match_prefix(np.arange(length)).indices.tolist() == slots.tolist()
            backwards = slots.reshape(-1, page)[::-1].ravel().tolist()
            half = length // (2 * page) * page
            assert cache.evict(half).indices.tolist() == backwards[:half]
            assert cache.evict(length).indices.tolist() == backwards[half:]
            cache.check()


@pytest.mark.parametrize("wrong", [2**32, 2**32 + 5, -1, 2**63 - 1])
def test_every_loop_finds_what_is_no_token(loops: None, wrong: int) -> None:
    for length in LENGTHS:
        for position in {0, length // 2, length - 1}:
            cache = create("cython")
            key = np.arange(5, 5 + length)
            cache.insert(key, key)
            key[position] = wrong
            outside = pytest.raises(ValueError, match=f"token {position} is {wrong}, outside")
            with outside:
                cache.match_prefix(key)
            with outside:
                cache.peek_prefix(key)
            with outside:
                cache.insert(key, np.zeros(length, np.int64))
            assert cache.stats()["lookups"] == 0 and cache.total_size() == length
            cache.check()


@pytest.mark.parametrize("config", [{}, {"page_size": 16}, {"bigram": True}], ids=str)
def test_keys_that_change_meanwhile(config: dict[str, Any]) -> None:
    """NumPy copies large arrays without the GIL: whatever the calls see, the tree stays sound."""
    cache = create("cython", **config)
    size = 1 << 16
    forms = [np.arange(size), np.arange(size)[::-1].copy(), np.full(size, 7), np.arange(size) << 20]
    key, slots = forms[0].copy(), np.arange(size)
    done = threading.Event()

    def write() -> None:
        turn = 0
        while not done.is_set():
            np.copyto(key, forms[turn % len(forms)])
            turn += 1

    writer = threading.Thread(target=write)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    writer.start()
    try:
        for turn in range(400):
            try:
                cache.insert(key[: turn * 211 % size + 1], slots[: turn * 211 % size + 1])
                cache.match_prefix(key)
                cache.match_prefix_many([key] * 3)
            except ValueError as error:
                assert "outside 0 … 4294967295" in str(error)
            if turn % 20 == 0:
                cache.evict(cache.total_size() // 2)
                cache.check()
    finally:
        done.set()
        writer.join()
        sys.setswitchinterval(interval)
    cache.insert(forms[0], slots)
    assert cache.match_prefix(forms[0]).indices.tolist() == slots[: size - bool(config.get("bigram"))].tolist()
    cache.check()
