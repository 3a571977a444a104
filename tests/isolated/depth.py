"""Chains of very many pages, on a small stack and with a low recursion limit.

``depth.py IMPLEMENTATION DEPTH SHAPE END``: SHAPE is ``comb`` (a branch at every page) or ``prefixes`` (each longer
than the one before, by one page); END is how the tree goes: ``evict``, ``namespace``, ``reset`` or ``drop``.
"""

from __future__ import annotations

import gc
import io
import sys
import threading
from typing import Any

import numpy as np
from implementations import Implementation

BRANCH = 2**31


def grow(cache: Any, depth: int, shape: str) -> Any:
    node = None
    for i in range(depth):
        node = cache.insert([i], [i], start=node).node
        if shape == "comb":
            cache.insert([BRANCH], [-i - 1], start=node)
    return node


def main() -> None:
    name, depth, shape, end = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    branches = depth if shape == "comb" else 0
    cache = Implementation(name).create(enable_kv_cache_events=shape == "prefixes")
    node = grow(cache, depth, shape)
    key = np.arange(depth, dtype=np.uint32)
    assert cache.total_size() == depth + branches
    match = cache.match_prefix(key)
    assert match.length == depth and match.node == node
    assert np.array_equal(match.indices, key)
    batch = cache.match_prefix_many([key, key[: depth // 2]], threads=2)
    assert batch.indices.shape == (depth + depth // 2,)
    assert cache.path_indices(node, depth - 3).tolist() == [depth - 3, depth - 2, depth - 1]
    assert cache.peek_prefix(key.tolist()) == depth
    assert len(cache.block_hashes(node)) == depth
    assert cache.inc_lock_ref(node) == depth
    assert cache.inc_lock_ref(cache.match_prefix(key[: depth // 3]).node) == 0
    assert cache.dec_lock_ref(node) == depth - depth // 3
    assert cache.dec_lock_ref(cache.match_prefix(key[: depth // 3]).node) == depth // 3
    assert len(cache.all_indices()) == cache.evictable_size() == depth + branches
    cache.check()
    printed = io.StringIO()
    cache.pretty_print(printed)
    assert printed.getvalue() and repr(cache)
    assert cache.stats()["memory_bytes"] > depth
    assert len(cache.take_events()) == (depth if shape == "prefixes" else 0)
    cache.evict(branches // 2 + depth // 4)  # merges all over the chain
    cache.check()
    if end == "evict":
        while cache.total_size():
            cache.evict(depth // 3)
    elif end == "namespace":
        assert cache.evict_namespace(None).num_tokens == cache.stats()["evicted_tokens"] - branches // 2 - depth // 4
    elif end == "reset":
        cache.reset()
    if end != "drop":
        assert cache.total_size() == 0 and cache.insert([1, 2], [1, 2]).length == 2
        cache.check()
    del cache, node, match, batch
    gc.collect()


if __name__ == "__main__":
    failed: list[int] = []

    def guarded() -> None:
        try:
            main()
        except BaseException:
            failed.append(1)
            raise

    sys.setrecursionlimit(160)
    threading.stack_size(256 * 1024)
    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    sys.exit(len(failed))
