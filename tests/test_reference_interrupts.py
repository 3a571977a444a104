"""The reference, interrupted at every line of every operation: afterwards it is as before, or the operation is done.

Ctrl-C and MemoryError may come between any two steps of plain Python. Here a trace function raises at the first line
that an operation runs, in another cache at the second, and so on. What the cache holds is then asked for through its
own calls, down to the order in which it would evict.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import triradix.reference
from triradix.reference import RadixCache, merge, split
from triradix.reference.marks import Reads
from triradix.reference.node import Run

FOLDER = str(Path(triradix.reference.__file__).parent)
LONG = list(range(100, 140))


class Interrupted(BaseException):
    pass


class Interrupt:
    """A trace function that raises at the line with this number of those that the reference runs.

    Not in ``exclusive.py``: Python looks for signals at calls and jumps alone, and none stands there where it would
    matter; a trace function comes at every line.
    """

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        path = Path(frame.f_code.co_filename)
        if str(path.parent) != FOLDER or path.stem == "exclusive":
            return None
        if event == "line":
            self.left -= 1
            if self.left < 0:
                raise Interrupted
        return self


def prepared(**options: Any) -> tuple[RadixCache, dict[str, Any]]:
    """Branches, a namespace, locks, reads that left marks, a path that was cut."""
    cache = RadixCache(**options)
    nodes = {"long": cache.insert(LONG, LONG).node}
    nodes["branch"] = cache.insert([*LONG[:20], 1, 2, 3, 4], range_of(24)).node
    nodes["named"] = cache.insert([5, 6, 7, 8], [5, 6, 7, 8], "name", priority=3).node
    for end in (36, 30, 24, 8):
        nodes[f"read {end}"] = cache.match_prefix(LONG[:end]).node
    nodes["alone"] = cache.insert([50, 51, 52, 53, 54, 55], range_of(6)).node
    cache.insert([50, 51, 60, 61], range_of(4))
    for end in ([1, 2, 3, 4], [5, 6, 7, 8]):  # ends of a trunk that is too long to be joined with the last of them
        cache.insert([*range(200, 220), *end], range_of(24))
    cache.inc_lock_ref(nodes["branch"])
    cache.inc_lock_ref(nodes["read 30"])
    cache.evict(2)
    cache.block_hashes(nodes["branch"])
    return cache, nodes


def range_of(count: int) -> list[int]:
    return list(range(1000, 1000 + count))


def written(run: Run) -> list[Any]:
    """What the marks and the reads of a run say."""
    reads = run.reads or Reads()
    return [[mark.said() for mark in run.marks], list(reads.ends), list(reads.ticks)]


Call = Callable[[RadixCache, dict[str, Any]], Any]
CALLS: dict[str, Call] = {
    "match": lambda cache, nodes: cache.match_prefix(LONG),
    "match inside a run": lambda cache, nodes: cache.match_prefix(LONG[:28]),
    "match that prunes": lambda cache, nodes: cache.match_prefix(LONG[:34]),
    "match of another space": lambda cache, nodes: cache.match_prefix([5, 6, 7, 8, 9], "name"),
    "match below a node": lambda cache, nodes: cache.match_prefix(
        LONG[nodes["read 24"].length :], start=nodes["read 24"]
    ),
    "insert again": lambda cache, nodes: cache.insert(LONG, LONG, inserted_len=24, priority=5),
    "insert of a branch": lambda cache, nodes: cache.insert([*LONG[:26], 9, 9, 9, 9], range_of(30)),
    "insert at the end": lambda cache, nodes: cache.insert([*LONG, 7, 7], range_of(42)),
    "insert into a new space": lambda cache, nodes: cache.insert([1, 2], [1, 2], ("new", "salt")),
    "lock": lambda cache, nodes: cache.inc_lock_ref(nodes["read 36"]),
    "lock inside a run": lambda cache, nodes: cache.inc_lock_ref(nodes["read 8"]),
    "unlock": lambda cache, nodes: cache.dec_lock_ref(nodes["branch"]),
    "unlock inside a run": lambda cache, nodes: cache.dec_lock_ref(nodes["read 30"]),
    "evict": lambda cache, nodes: cache.evict(14),
    "evict a space": lambda cache, nodes: cache.evict_namespace("name"),
    "evict all": lambda cache, nodes: cache.evict(1000),
    "hashes": lambda cache, nodes: cache.block_hashes(nodes["alone"]),
    "reset": lambda cache, nodes: cache.reset(),
}
OPTIONS = [
    {},
    {"eviction_policy": "mru", "page_size": 2},
    {"eviction_policy": "lfu", "enable_kv_cache_events": True},
    {"eviction_policy": "priority", "bigram": True},
]


def observed(cache: RadixCache, nodes: dict[str, Any]) -> list[Any]:
    """All that the calls of a cache tell of it, and what its marks say; it is empty afterwards."""
    cache.check()
    statistics = cache.stats()
    for private in ("nodes", "memory_bytes"):
        del statistics[private]
    told: list[Any] = [sorted(statistics.items()), cache.protected_size(), sorted(cache.all_indices().tolist())]
    told.append(sorted((run.start, run.last, written(run)) for run in cache._tree.runs()))
    for name, node in nodes.items():
        try:
            told.append((name, cache.block_hashes(node), cache.path_indices(node).tolist()))
        except triradix.StaleNodeError:
            told.append((name, "stale"))
    told.append([repr(event) for event in cache.take_events()])
    told.append(cache.evict(10).indices.tolist())
    for node in nodes.values():
        while True:
            try:
                told.append(cache.dec_lock_ref(node))
            except (ValueError, triradix.StaleNodeError):
                break
    cache.check()
    told.append(cache.evict(10_000).indices.tolist())
    cache.check()
    return told


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_interrupted_anywhere(name: str, options: dict[str, Any], thorough: bool) -> None:
    interrupt_anywhere(lambda: prepared(**options), CALLS[name], thorough)


@pytest.mark.parametrize("call, more", [("inc_lock_ref", 1), ("dec_lock_ref", -1)])
def test_interrupted_among_many_marks(call: str, more: int, thorough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that splits a run which has reads, and a release that joins two of them."""
    monkeypatch.setattr(split, "MOST_MARKS", 4)
    monkeypatch.setattr(merge, "MOST_MERGED_MARKS", 3)
    locked = (38, 34, 30, 26, 22, 18)

    def prepare() -> tuple[RadixCache, dict[str, Any]]:
        cache = RadixCache()
        cache.insert(LONG, LONG)
        nodes = {f"read {end}": cache.match_prefix(LONG[:end]).node for end in range(38, 0, -2)}
        for end in locked[: -1 if more > 0 else None]:
            cache.inc_lock_ref(nodes[f"read {end}"])
        return cache, nodes

    def change(cache: RadixCache, nodes: dict[str, Any]) -> None:
        runs = cache.stats()["nodes"]
        getattr(cache, call)(nodes[f"read {locked[-1 if more > 0 else 0]}"])
        assert cache.stats()["nodes"] == runs + more

    interrupt_anywhere(prepare, change, thorough)


def interrupt_anywhere(prepare: Callable[[], tuple[RadixCache, dict[str, Any]]], call: Call, thorough: bool) -> None:
    before = observed(*prepare())
    cache, nodes = prepare()
    call(cache, nodes)
    after = observed(cache, nodes)
    at, undone = 0, 0
    while True:
        cache, nodes = prepare()
        traced = sys.gettrace()
        sys.settrace(Interrupt(at))
        try:
            call(cache, nodes)
            break
        except Interrupted:
            pass
        finally:
            sys.settrace(traced)
        told = observed(cache, nodes)
        assert told in (before, after), f"interrupted at line {at}"
        undone += told == before
        at += 1 if thorough or at < 40 else 3
    assert undone
