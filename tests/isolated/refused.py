"""Each single allocation of each call refused in turn: ``refused.py IMPLEMENTATION``, with ``refuse.c`` preloaded.

The call either does all of its work or raises MemoryError and has changed nothing; nothing aborts or crashes, and the
next call works. What is on its way is printed first, so that a crash names its call.
"""

from __future__ import annotations

import ctypes
import gc
import io
import os
import sys
from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

from implementations import Implementation

import triradix

shim = ctypes.PyDLL(os.environ["LD_PRELOAD"])
shim.call_refusing.restype = ctypes.py_object
shim.call_refusing.argtypes = (ctypes.py_object, ctypes.c_long, ctypes.c_long)

KEY = array("q", range(100, 164))
LONGER = array("q", [*range(100, 164), *range(1000, 1064)])
BRANCH = array("q", [*range(100, 130), *range(2000, 2034)])
SLOTS = array("q", range(128))
OTHER = triradix.PrefixKey(list(range(40, 80)))


class Scene:
    """A cache with something of everything, made anew for each refusal, since a call changes it."""

    def __init__(self, implementation: Implementation, config: dict[str, Any]) -> None:
        self.cache: Any = implementation.create(**config)
        self.cache.insert(KEY, SLOTS[:64])
        self.cache.insert(BRANCH, SLOTS[:64])
        self.cache.insert(LONGER[:80], SLOTS[:80], ("tenant", None))
        self.found = self.cache.match_prefix(KEY)
        self.many = self.cache.match_prefix_many([KEY, BRANCH])
        self.node = self.found.node
        self.cache.inc_lock_ref(self.node)
        self.stale = self.cache.insert(KEY, SLOTS[:64], "gone").node
        self.cache.evict_namespace("gone")

    def calls(self) -> dict[str, Callable[[], Any]]:
        cache = self.cache
        return {
            "match_prefix, found": partial(cache.match_prefix, KEY),
            "match_prefix, not found": partial(cache.match_prefix, array("q", [5, 6])),
            "match_prefix of a list": partial(cache.match_prefix, list(KEY)),
            "match_prefix of a PrefixKey": partial(cache.match_prefix, triradix.PrefixKey(BRANCH)),
            "match_prefix in a namespace": partial(cache.match_prefix, LONGER, ("tenant", None)),
            "match_prefix from a node": partial(cache.match_prefix, LONGER[64:], start=self.node),
            "match_prefix of what is no token": partial(cache.match_prefix, [1, 2**32]),
            "match_prefix of what is no key": partial(cache.match_prefix, 3.5),
            "match_prefix from a stale node": partial(cache.match_prefix, KEY, start=self.stale),
            "match_prefix_many": partial(cache.match_prefix_many, [KEY, list(BRANCH), OTHER]),
            "match_prefix_many, one bad": partial(cache.match_prefix_many, [KEY, [-1]]),
            "match_prefix_many in namespaces": partial(cache.match_prefix_many, [KEY, KEY], ["a", ("b", "c")]),
            "peek_prefix": partial(cache.peek_prefix, LONGER),
            "peek_prefix_many": partial(cache.peek_prefix_many, [KEY, LONGER]),
            "insert of a longer key": partial(cache.insert, LONGER, SLOTS),
            "insert of a branch": partial(cache.insert, [*range(100, 110), 1, 2, 3], list(range(13))),
            "insert of what is there": partial(cache.insert, KEY, SLOTS[:64]),
            "insert in a new namespace": partial(cache.insert, KEY, SLOTS[:64], "fresh"),
            "insert of too few values": partial(cache.insert, KEY, SLOTS[:10]),
            "inc_lock_ref": partial(cache.inc_lock_ref, self.many.nodes[1]),
            "dec_lock_ref": partial(cache.dec_lock_ref, self.node),
            "dec_lock_ref without a lock": partial(cache.dec_lock_ref, self.many.nodes[1]),
            "evict": partial(cache.evict, 20),
            "evict_namespace": partial(cache.evict_namespace, ("tenant", None)),
            "indices": partial(getattr, self.found, "indices"),
            "nodes of a batch": partial(getattr, self.many, "nodes"),
            "indices of a batch": partial(getattr, self.many, "indices"),
            "path_indices": partial(cache.path_indices, self.node),
            "all_indices": cache.all_indices,
            "block_hashes": partial(cache.block_hashes, self.node),
            "take_events": cache.take_events,
            "stats": cache.stats,
            "check": cache.check,
            "repr": partial(repr, cache),
            "repr of a node": partial(repr, self.node),
            "repr of a result": partial(repr, self.found),
            "pretty_print": partial(cache.pretty_print, io.StringIO()),
            "reset": cache.reset,
        }

    def state(self) -> tuple[Any, ...]:
        stats = {name: count for name, count in self.cache.stats().items() if name not in ("nodes", "memory_bytes")}
        return self.cache.total_size(), self.cache.protected_size(), stats


REFUSALS = (TypeError, ValueError, LookupError, SystemError)
"""The last one is the interpreter's own, also in plain Python: it now and then forgets which error it was."""


def main() -> None:
    implementation = Implementation(sys.argv[1])
    gc.disable()
    counts = {}
    # Where Rust makes a namespace, one of its allocations cannot fail but end the process: docs/FINE_PRINT.md.
    left_out = "namespace" if str(implementation) == "rust" else None
    for config in ({}, {"page_size": 16, "enable_kv_cache_events": True}):
        for name in [name for name in Scene(implementation, config).calls() if not left_out or left_out not in name]:
            for spared in range(10_000):
                scene = Scene(implementation, config)
                call = scene.calls()[name]
                before = scene.state()
                print(f"{name}, {config}: allocation {spared}", file=sys.stderr, flush=True)
                error: BaseException | None = None
                try:
                    shim.call_refusing(call, spared, 1)
                except BaseException as raised:
                    error = raised
                refused = shim.was_refused()
                if isinstance(error, MemoryError):
                    # What a batch has begun it need not take back: see docs/FINE_PRINT.md.
                    after = scene.state()
                    assert after == before or ("many" in name and after[:2] == before[:2]), (before, after)
                else:
                    assert error is None or isinstance(error, REFUSALS), repr(error)
                scene.cache.check()
                assert scene.cache.match_prefix(KEY).length in (64, 0)
                if not refused:
                    counts[name] = counts.get(name, 0) + spared
                    break
    gc.enable()
    print(counts)


main()
