"""The interpreter ends while daemon threads are in the middle of calls: it neither hangs nor crashes, and says nothing.

They are without the GIL, or in Python code that a call runs; before Python 3.14 they are ended there.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np
from implementations import Implementation

import triradix
from triradix import log

KEYS = [[i % 11, i % 5, i % 3, 7] * 10 for i in range(2_000)]
KEY = KEYS[0]
PAIR = ("lora-1", "salt")


def linger(*_: Any) -> None:
    """Python code that takes most of a call's time."""
    for _ in range(300):
        pass


class Text(str):
    def __str__(self) -> str:
        linger()
        return "lora-1"


class Number(int):
    def __index__(self) -> int:
        linger()
        return 1


class Other:
    """Nothing that is allowed, which shows when its class is asked for."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        linger()
        return Other


class Slow(Sequence[Any]):
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        linger()
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        linger()
        return self.items[index]


class Exporter:
    """A buffer of which Python code learns that it is taken and given back: from Python 3.12 on."""

    def __init__(self) -> None:
        self.array = np.array(KEY, np.uint32)

    def __buffer__(self, flags: int) -> memoryview:
        linger()
        return memoryview(self.array)

    def __release_buffer__(self, view: memoryview) -> None:
        linger()


class Last:
    """Goes when the interpreter has begun to end, lets the threads try to go on, and then uses their caches."""

    def __init__(self, caches: list[Any]) -> None:
        self.caches = caches

    def __del__(
        self, sleep: Callable[[float], None] = time.sleep, write: Callable[[int, bytes], int] = os.write
    ) -> None:
        sleep(0.05)
        for cache in self.caches:
            cache.insert([5, 6, 7], [5, 6, 7])
            cache.match_prefix_many([[5, 6]])
            cache.check()
        write(1, b"the end\n")


class Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        linger()


def batch(cache: Any, threads: Any = None) -> None:
    cache.match_prefix_many(KEYS, threads=threads)


def changes(cache: Any) -> None:
    cache.insert([1, *KEY], [0] * 41)
    cache.evict(5)
    cache.take_events()


def held(cache: Any) -> None:
    """What is told at the level warn."""
    cache.insert(KEY, KEY)
    cache.inc_lock_ref(cache.match_prefix(KEY).node)
    cache.evict(10**6)


def drop(cache: Any) -> None:
    """A result is the last that keeps its cache."""
    other = type(cache)()
    watch = weakref.ref(other, linger)
    hit = other.match_prefix(KEY)
    del other, hit
    assert watch() is None


def refused(call: Callable[[], Any]) -> None:
    with suppress(TypeError, ValueError):
        call()


Way = Callable[[Any], Any]

LOGGED: dict[str, Way] = {
    "changes": changes,
    "held": held,
    "reset": lambda cache: cache.reset(),
}

WAYS: dict[str, dict[str, Way]] = {
    "batches": {
        "one thread": lambda cache: batch(cache, 1),
        "two threads": lambda cache: batch(cache, 2),
        "changes": changes,
    },
    "numbers": {
        "evict, NumPy": lambda cache: cache.evict(np.int64(0)),
        "evict, subclass": lambda cache: cache.evict(Number(0)),
        "evict, wrong": lambda cache: refused(lambda: cache.evict(Other())),
        "priority": lambda cache: cache.insert(KEY, KEY, priority=np.int64(3)),
        "inserted_len": lambda cache: cache.insert(KEY, KEY, inserted_len=Number(2)),
        "threads": lambda cache: cache.match_prefix_many([KEY], threads=Number(2)),
        "start": lambda cache: refused(lambda: cache.match_prefix(KEY, start=Other())),
        "page_size": lambda cache: type(cache)(page_size=Number(2)),
    },
    "namespaces": {
        "match": lambda cache: cache.match_prefix(KEY, PAIR),
        "insert": lambda cache: cache.insert(KEY, KEY, PAIR),
        "evict": lambda cache: cache.evict_namespace(PAIR),
        "subclass": lambda cache: cache.peek_prefix(KEY, Text("lora-1")),
        "parts": lambda cache: cache.peek_prefix(KEY, (Text("lora-1"), None)),
        "batch": lambda cache: cache.peek_prefix_many([KEY] * 9, [PAIR] * 9),
        "wrong": lambda cache: refused(lambda: cache.peek_prefix(KEY, Other())),
    },
    "keys": {
        "subclasses": lambda cache: cache.match_prefix([Number(token) for token in KEY]),
        "NumPy": lambda cache: cache.insert(KEY, list(np.array(KEY))),
        "a sequence of them": lambda cache: cache.match_prefix_many(Slow([KEY] * 9)),
        "a sequence of names": lambda cache: cache.peek_prefix_many([KEY] * 9, Slow(["a"] * 9)),
        "prepared": lambda cache: cache.match_prefix(triradix.PrefixKey(KEY).extended([9])),
        "outside": lambda cache: refused(lambda: cache.match_prefix([-1])),
        "wrong": lambda cache: refused(lambda: cache.match_prefix(Other())),
    },
    "objects": {
        "arrays": lambda cache: (cache.match_prefix(KEY).indices, cache.evict(1).indices),
        "nodes": lambda cache: (cache.match_prefix(KEY).node == Other(), list(cache.match_prefix_many([KEY]).nodes)),
        "shown": lambda cache: (repr(cache), repr(cache.match_prefix(KEY)), cache.stats()),
        "hashes": lambda cache: cache.block_hashes(cache.match_prefix(KEY).node),
        "drop": drop,
    },
    "log to stderr": LOGGED,
    "log to logging": LOGGED,
}
if sys.version_info >= (3, 12):
    WAYS["keys"] |= {
        "buffer": lambda cache: cache.insert(Exporter(), KEY),
        "batch of buffers": lambda cache: cache.match_prefix_many([Exporter(), Exporter()]),
    }


def prepare(group: str) -> None:
    """What Python code the calls of that group run, unless it is that of their arguments."""
    if group == "log to stderr":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what is told there is not what is looked at
        log.configure("trace", "stderr")
    elif group == "log to logging":
        logger = logging.getLogger("triradix")
        logger.setLevel(1)
        logger.addHandler(Handler())
        logger.propagate = False
        log.configure("trace", "logging")


def main(name: str, group: str) -> None:
    sys.setswitchinterval(1e-5)
    caches = [Implementation(name).create(enable_kv_cache_events=True) for _ in WAYS[group]]
    begun = [threading.Event() for _ in WAYS[group]]
    for cache in caches:
        for key in KEYS:
            cache.insert(key, key)

    def work(number: int, way: Way) -> None:
        try:
            while True:
                way(caches[number])
                begun[number].set()
        finally:
            begun[number].set()

    prepare(group)
    for number, way in enumerate(WAYS[group].values()):
        threading.Thread(target=work, args=(number, way), daemon=True).start()
    for event in begun:
        event.wait()
    sys.modules["last"] = module = ModuleType("last")
    module.__dict__["kept"] = Last(caches)


main(*sys.argv[1:])
