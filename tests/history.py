"""Histories of overlapping calls, and whether some order of them explains every answer (linearizability).

A history is recorded in windows of at most a dozen calls, with quiet between them. Each window begins with an empty
cache and some calls one after the other, then threads call at the same time, and in the end everything is evicted: the
order of that says in which order the pages were used. The elements of a batch count as calls of their own.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from itertools import count
from time import sleep
from typing import Any

import oracle

from triradix import StaleNodeError

THREADS = 3
CALLS = 4  # of each thread in a window, the elements of batches counted
EVERYTHING = 10**9


@dataclass(frozen=True)
class Call:
    """``what(arguments)``; ``nodes`` of a window are those of the inserts that it began with."""

    what: str
    arguments: tuple[Any, ...]

    def parts(self) -> list[Call]:
        """Calls that do the same one after the other."""
        if self.what not in ("match_many", "peek_many"):
            return [self]
        return [Call(self.what.removesuffix("_many"), (key,)) for key in self.arguments[0]]


@dataclass
class Recorded:
    """A call, or an element of a batch: what it answered, and between which events of the window."""

    call: Call
    thread: int
    began: int
    ended: int
    answer: Any


@dataclass
class Window:
    before: list[Call]
    threads: list[list[Call]]
    recorded: list[Recorded] = field(default_factory=list)
    left: list[int] = field(default_factory=list)  # slots in the order in which they went in the end


def make(call: Call, cache: Any, nodes: list[Any]) -> Any:
    """The answer as plain data. Of a batch: one for each element."""
    what, arguments = call.what, call.arguments
    try:
        if what == "insert":
            result = cache.insert(*arguments)
            return result.prefix_len, result.length
        if what == "match":
            return cache.match_prefix(*arguments).length
        if what == "peek":
            return cache.peek_prefix(*arguments)
        if what == "match_many":
            return cache.match_prefix_many(*arguments, threads=2).lengths.tolist()
        if what == "peek_many":
            return cache.peek_prefix_many(*arguments, threads=2).tolist()
        if what == "evict":
            return cache.evict(*arguments).indices.tolist()
        if what == "size":
            return cache.total_size(), cache.protected_size()
        node = nodes[arguments[0]]
        if what == "path":
            return cache.path_indices(node).tolist()
        if what == "lock":
            return cache.inc_lock_ref(node)
        assert what == "unlock"
        return cache.dec_lock_ref(node)
    except (StaleNodeError, ValueError) as error:
        return type(error)


def begin(calls: list[Call], cache: Any) -> list[Any]:
    """The nodes of the inserts with which a window begins."""
    return [cache.insert(*call.arguments).node for call in calls]


def plan(seed: int) -> Window:
    """What a window will call."""
    choose = random.Random(seed)
    slots = count(0, 10)
    keys = [[choose.randint(1, 2) for _ in range(choose.randint(1, 5))] for _ in range(5)]

    def key() -> list[int]:
        chosen = choose.choice(keys)
        return chosen[: choose.randint(1, len(chosen))] + [3] * choose.randint(0, 1)

    def insertion() -> Call:
        tokens = key()
        first = next(slots)
        return Call("insert", (tokens, list(range(first, first + len(tokens)))))

    def one(left: int) -> Call:
        what = choose.randint(0, 12)
        if what <= 2:
            return insertion()
        if what <= 4:
            return Call("match", (key(),))
        if what <= 6 and left > 1:
            many = choose.choice(["match_many", "match_many", "peek_many"])
            return Call(many, ([key() for _ in range(left)],))
        if what <= 8:
            return Call("evict", (choose.randint(1, 4),))
        if what <= 11:
            return Call(choose.choice(["path", "lock", "unlock"]), (choose.randint(0, 3),))
        return Call(choose.choice(["peek", "size"]), (key(),)) if what == 11 else Call("size", ())

    threads = []
    for _ in range(THREADS):
        calls: list[Call] = []
        while (left := CALLS - sum(len(call.parts()) for call in calls)) > 0:
            calls.append(one(left))
        threads.append(calls)
    return Window([insertion() for _ in range(4)], threads)


class Recorder:
    """Threads that wait for windows and make their calls at the same time."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache
        self.window: Window | None = None
        self.gate = threading.Barrier(THREADS + 1)
        self.threads = [threading.Thread(target=self._serve, args=(number,)) for number in range(THREADS)]

    def __enter__(self) -> Recorder:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.window = None
        self.gate.wait()
        for thread in self.threads:
            thread.join()

    def record(self, window: Window) -> None:
        self.nodes = begin(window.before, self.cache)
        self.clock, self.window = count(), window
        self.gate.wait()
        self.gate.wait()
        for node in self.nodes:
            while make(Call("unlock", (0,)), self.cache, [node]) not in (ValueError, StaleNodeError):
                pass
        window.left = self.cache.evict(EVERYTHING).indices.tolist()

    def _serve(self, number: int) -> None:
        while True:
            self.gate.wait()
            if self.window is None:
                return
            for call in self.window.threads[number]:
                began = next(self.clock)
                sleep(0)  # lets others go on: calls are so short that few would overlap
                answer = make(call, self.cache, self.nodes)
                sleep(0)
                ended = next(self.clock)
                parts = call.parts()
                answers = answer if len(parts) > 1 or parts[0] is not call else [answer]
                for part, one in zip(parts, answers, strict=True):
                    self.window.recorded.append(Recorded(part, number, began, ended, one))
            self.gate.wait()


def explains(window: Window, order: list[Recorded]) -> int:
    """How many of ``order``, made one after the other, answer as recorded; one more if the end is as recorded too."""
    model = oracle.RadixCache()
    nodes = begin(window.before, model)
    for done, recorded in enumerate(order):
        if make(recorded.call, model, nodes) != recorded.answer:
            return done
    for node in nodes:
        while make(Call("unlock", (0,)), model, [node]) not in (ValueError, StaleNodeError):
            pass
    return len(order) + (model.evict(EVERYTHING).indices.tolist() == window.left)


def is_explained(window: Window) -> bool:
    """Whether some order, in which nothing comes before what had ended when it began, answers as recorded."""
    by_thread = [[one for one in window.recorded if one.thread == number] for number in range(THREADS)]
    order: list[Recorded] = []

    def wrong_at(places: tuple[int, ...]) -> int | None:
        """None if ``order`` can go on so that it explains all; else the last place where another call must stand."""
        heads = [part[place] for part, place in zip(by_thread, places, strict=True) if place < len(part)]
        if not heads:
            explained = explains(window, order)
            return None if explained > len(order) else min(explained, len(order) - 1)
        first_end = min(head.ended for head in heads)
        here = len(order)
        # The likeliest first.
        for head in sorted((head for head in heads if head.began <= first_end), key=lambda head: head.ended):
            order.append(head)
            wrong = wrong_at(tuple(place + (number == head.thread) for number, place in enumerate(places)))
            order.pop()
            if wrong is None or wrong < here:
                return wrong
        return here - 1

    return wrong_at((0,) * THREADS) is None


def shown(window: Window) -> str:
    lines = [f"{one.began:3}-{one.ended:<3} thread {one.thread}: {one.call} -> {one.answer}" for one in window.recorded]
    return "\n".join(["before:", *map(str, window.before), "then:", *lines, f"left: {window.left}"])
