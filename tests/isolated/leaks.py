"""Memory over many cycles of one kind of use: ``leaks.py IMPLEMENTATION KIND CYCLES``.

A cycle leaves nothing behind, so after a warm-up neither what Python has allocated (tracemalloc) nor the resident
memory of the process, nor what the cache itself says that it holds, may grow with the number of cycles.
"""

from __future__ import annotations

import gc
import resource
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
from implementations import Implementation

import triradix

IMPLEMENTATION = Implementation(sys.argv[1])
LASTING = triradix.PrefixKey(list(range(50)))


def make(**config: Any) -> Any:
    return IMPLEMENTATION.create(**config)


def calls(cache: Any, i: int) -> None:
    """Every method, with tokens that change from cycle to cycle."""
    key = [i % 7, i, i + 1, i % 3, 5, 6]
    node = cache.insert(key, key, ("a", None)).node
    cache.insert([*key[:3], 9, 9], [0] * 5, "a", priority=i, inserted_len=2)
    match = cache.match_prefix(key, "a")
    match.indices  # noqa: B018
    cache.inc_lock_ref(node)
    cache.match_prefix_many([key, key[:2]] * 3, ["a", None] * 3, threads=2).indices  # noqa: B018
    cache.peek_prefix_many([key, key])
    cache.path_indices(node, 1)
    cache.block_hashes(node)
    cache.insert([7, 7], [1, 1], start=node)
    cache.dec_lock_ref(match.node)
    cache.all_indices()
    cache.stats()
    cache.take_events()
    repr(cache), repr(node), hash(node), node == match.node
    cache.evict(3).indices  # noqa: B018
    cache.evict_namespace("a")
    cache.take_events()


def failures(cache: Any, i: int) -> None:
    good, strange = [i, i + 1], object()
    array = np.array([i, -1])
    for call in (
        lambda: cache.match_prefix([i, -1]),
        lambda: cache.match_prefix([i, strange]),
        lambda: cache.match_prefix(strange),
        lambda: cache.match_prefix(array),
        lambda: cache.match_prefix(np.zeros((2, 2), np.int64)),
        lambda: cache.match_prefix(good, strange),
        lambda: cache.match_prefix(good, ("a", "\ud800")),
        lambda: cache.match_prefix(good, start=strange),
        lambda: cache.match_prefix_many([good, [i, -1]]),
        lambda: cache.match_prefix_many([good, good], ["a", strange]),
        lambda: cache.match_prefix_many([good], [None, None]),
        lambda: cache.match_prefix_many([good], threads=0),
        lambda: cache.insert(good, [1]),
        lambda: cache.insert(good, [1, 2**63]),
        lambda: cache.insert(good, good, priority=2**63),
        lambda: cache.insert(good, good, inserted_len=-1),
        lambda: cache.insert(good, array, priority="x"),
        lambda: cache.evict(-1),
        lambda: cache.inc_lock_ref(strange),
        lambda: cache.dec_lock_ref(cache.insert([1], [1]).node),
        lambda: cache.path_indices(cache.insert([1], [1]).node, -1),
        lambda: make(page_size=0),
        lambda: triradix.PrefixKey([1, -1]),
    ):
        try:
            call()
        except (ValueError, TypeError):
            continue
        raise AssertionError("a call should have failed")
    stale = cache.insert([2, 3], [2, 3]).node
    unread = cache.match_prefix([2, 3])
    cache.evict(10)
    for call in (
        lambda: cache.inc_lock_ref(stale),
        lambda: unread.indices,
        lambda: cache.match_prefix([1], start=stale),
    ):
        with suppress(triradix.StaleNodeError):
            call()
            raise AssertionError("a node should be stale")
    cache.take_events()


def namespaces(cache: Any, i: int) -> None:
    name = (f"tenant {i}", "salt" * (i % 3))
    root = cache.match_prefix([], name).node
    cache.insert([1, 2, 3], [1, 2, 3], name)
    cache.match_prefix([1, 2], name)
    cache.match_prefix([1, 2], f"never cached {i}")
    cache.evict_namespace(name)
    cache.peek_prefix([1], name)
    assert root.is_root
    cache.take_events()


def caches(_: Any, i: int) -> None:
    cache = make(page_size=2, enable_kv_cache_events=True)
    for n in range(5):
        cache.insert(list(range(n, 40)), [0] * (40 - n), ("x", str(n)))
    cache.match_prefix(LASTING)
    cache.match_prefix_many([LASTING, LASTING[:10]])
    if i % 2:
        cache.inc_lock_ref(cache.match_prefix(LASTING).node)


def handles(cache: Any, i: int) -> None:
    """Handles of pages that stay."""
    if cache.total_size() == 0:
        cache.insert(list(range(500)), list(range(500)))
    for n in range(i % 50, 500, 50):
        match = cache.match_prefix(list(range(n)))
        cache.inc_lock_ref(match.node)
        cache.dec_lock_ref(match.node)
        {match.node, cache.match_prefix([n + 1], start=match.node).node}


def branches(cache: Any, i: int) -> None:
    """One long run that is split, grows and merges at the same places for ever."""
    if cache.total_size() == 0:
        cache.inc_lock_ref(cache.insert(list(range(300)), list(range(300))).node)
    for at in (i % 300, (i * 7) % 300, 300):
        cache.insert([*range(at), 1000, 1001], [0] * (at + 2))
    cache.evict(6)
    assert cache.total_size() == 300
    cache.take_events()


def resets(cache: Any, i: int) -> None:
    node = cache.insert(list(range(i, i + 100)), [0] * 100, str(i)).node
    cache.inc_lock_ref(node)
    cache.reset()
    cache.take_events()


def resident() -> int:
    """The peak, in bytes: what leaks raises it for good."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    use: Callable[[Any, int], None] = globals()[sys.argv[2]]
    cycles = int(sys.argv[3])
    cache = make(enable_kv_cache_events=True)
    for i in range(cycles // 4):
        use(cache, i)
    gc.collect()
    held, before = cache.stats()["memory_bytes"], resident()
    for i in range(cycles):
        use(cache, cycles + i)
    gc.collect()
    grown, more = resident() - before, cache.stats()["memory_bytes"] - held
    print(f"{sys.argv[1]}, {use.__name__}: resident memory grew by {grown} B, memory_bytes by {more}")
    assert grown < 3 * 2**20, f"resident memory grew by {grown} bytes in {cycles} cycles"
    assert more < 2**16, f"memory_bytes grew by {more} in {cycles} cycles"

    few = max(cycles // 10, 100)
    tracemalloc.start(8)
    snapshots = []
    for part in range(4):  # the first is another warm-up
        for i in range(few):
            use(cache, (4 + part) * cycles + i)
        gc.collect()
        whole = tracemalloc.take_snapshot()
        snapshots.append(whole.filter_traces([tracemalloc.Filter(False, tracemalloc.__file__)]))
    # What is swept now and then comes and goes; what leaks grows in every part.
    grown_always: set[Any] | None = None
    for one, two in pairwise(snapshots):
        lines = {entry.traceback for entry in two.compare_to(one, "traceback") if entry.count_diff >= few // 2}
        grown_always = lines if grown_always is None else grown_always & lines
    for traceback in grown_always or ():
        print(*traceback.format(), sep="\n")
    assert not grown_always, "what was allocated there is never given back"


if __name__ == "__main__":
    main()
