"""An internal error of the Rust tree, forced: an exception that says what is left of the cache, and no lock stays held.

The Cython tree has no such thing: nothing inside it can raise. The reference takes back whatever it had begun, whatever
raised (`test_reference_interrupts.py`), so its caches stay usable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import triradix
from triradix import IntegrityError

KEY = list(range(20))


@pytest.fixture
def cache() -> Any:
    cache: Any = triradix.create("rust", enable_kv_cache_events=True)
    cache.insert(KEY, KEY)
    return cache


def every_call(cache: Any) -> list[Callable[[], Any]]:
    node = cache.insert(KEY, KEY).node
    return [
        lambda: cache.match_prefix(KEY),
        lambda: cache.match_prefix_many([KEY]),
        lambda: cache.match_prefix_many([KEY] * 500, threads=2),
        lambda: cache.peek_prefix(KEY),
        lambda: cache.peek_prefix_many([KEY]),
        lambda: cache.insert(KEY, KEY),
        lambda: cache.inc_lock_ref(node),
        lambda: cache.dec_lock_ref(node),
        lambda: cache.evict(3),
        lambda: cache.evict_namespace(None),
        lambda: cache.path_indices(node),
        lambda: cache.all_indices(),
        lambda: cache.total_size(),
        lambda: cache.stats(),
        lambda: cache.block_hashes(node),
        lambda: cache.take_events(),
        lambda: cache.check(),
        lambda: repr(cache),
        lambda: node.extra_key,
    ]


def test_while_reading(cache: Any) -> None:
    with pytest.raises(IntegrityError, match="an internal error, which left the cache as it was: as asked for"):
        cache._fail(changing=False)
    cache.check()
    assert cache.match_prefix(KEY).length == 20
    assert cache.insert([*KEY, 99], [*KEY, 99]).prefix_len == 20
    cache.check()


def test_half_way_through_a_change(cache: Any) -> None:
    calls = every_call(cache)
    with pytest.raises(IntegrityError, match=r"which left the cache unusable until its reset\(\): as asked for"):
        cache._fail(changing=True)
    for call in calls:
        with pytest.raises(IntegrityError, match=r"unusable until its reset\(\): an earlier call"):
            call()
    cache.reset()
    cache.check()
    assert isinstance(cache.take_events()[-1], triradix.AllBlocksCleared)
    assert (cache.total_size(), cache.stats()["lookups"]) == (0, 0)
    assert cache.match_prefix(KEY).length == 0
    node = cache.insert(KEY, KEY).node
    assert cache.inc_lock_ref(node) == 20 and cache.dec_lock_ref(node) == 20
    assert cache.evict(20).indices.tolist() == KEY[::-1]
    cache.check()


def test_nobody_waits_for_a_lock_that_is_never_released(cache: Any) -> None:
    """Errors, resets and batches on several cores at the same time: each call ends."""
    ended: list[str] = []

    def batches() -> None:
        for _ in range(30):
            try:
                cache.match_prefix_many([KEY] * 300, threads=2)
            except IntegrityError:
                pass
            else:
                ended.append("batch")

    def errors() -> None:
        for turn in range(60):
            with pytest.raises(IntegrityError):
                cache._fail(changing=turn % 2 == 0)
            cache.reset()
            ended.append("reset")

    threads = [threading.Thread(target=work) for work in (batches, batches, errors)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended.count("reset") == 60
    cache.reset()
    cache.check()
    assert cache.insert(KEY, KEY).length == 20
