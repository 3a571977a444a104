"""A whole LLM engine, small enough to read: a transformer in NumPy, a paged pool of keys and values, a prefix cache.

    python docs/tiny_engine.py        # without a cache, then with each of the three trees
    python docs/tiny_engine.py rust   # without one, and with this one

The model is random: what it says means nothing, but it must say the same with and without a cache. See TUTORIAL.md.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import triradix

Floats = npt.NDArray[np.float64]
Slots = npt.NDArray[np.int64]


class Pool:
    """Keys and values of ``pages`` pages of ``page_size`` tokens; a slot is the place of one token in them."""

    def __init__(self, pages: int, page_size: int, layers: int, heads: int, head: int) -> None:
        self.page_size, self.free_pages = page_size, list(range(pages))
        self.keys, self.values = np.zeros((2, layers, pages * page_size, heads, head))

    def take(self, pages: int) -> Slots:
        """The slots of so many free pages, in order."""
        taken = [self.free_pages.pop() for _ in range(pages)]
        return (np.array(taken, dtype=np.int64)[:, None] * self.page_size + np.arange(self.page_size)).ravel()

    def give_back(self, slots: Slots) -> None:
        """Free the pages that these slots stand in. They begin at a page; the last may be cut."""
        self.free_pages.extend((slots[:: self.page_size] // self.page_size).tolist())


class Model:
    """A decoder: embedding, attention with rotated positions, a two-layer perceptron; weights of one seed."""

    def __init__(self, vocabulary: int = 128, layers: int = 2, heads: int = 4, head: int = 16, seed: int = 0) -> None:
        rng, width = np.random.default_rng(seed), heads * head
        self.layers, self.heads, self.head = layers, heads, head
        self.embedding, self.say = rng.normal(size=(2, vocabulary, width))
        self.attend = rng.normal(size=(layers, 4, width, width)) * 2 / width**0.5  # sharp enough to depend on all slots
        self.think = rng.normal(size=(layers, 2, width, width)) / width**0.5
        self.turns = 100.0 ** (-np.arange(head // 2) / (head // 2))

    def forward(self, tokens: list[int], slots: Slots, pool: Pool) -> int:
        """Compute the last ``len(tokens)`` of ``len(slots)`` tokens; those before are in the pool. The next token."""
        total, new = len(slots), len(tokens)
        at = np.arange(total - new, total)
        x = self.embedding[tokens]
        for layer in range(self.layers):
            q, k, v = ((normal(x) @ self.attend[layer, i]).reshape(new, self.heads, self.head) for i in range(3))
            pool.keys[layer, slots[-new:]] = self.rotate(k, at)
            pool.values[layer, slots[-new:]] = v
            scores = np.einsum("qhd,khd->hqk", self.rotate(q, at), pool.keys[layer, slots]) / self.head**0.5
            scores[:, np.arange(total) > at[:, None]] = -np.inf  # nobody looks ahead
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights /= weights.sum(axis=-1, keepdims=True)
            seen = np.einsum("hqk,khd->qhd", weights, pool.values[layer, slots]).reshape(new, -1)
            x = x + seen @ self.attend[layer, 3]
            x = x + np.maximum(normal(x) @ self.think[layer, 0], 0) @ self.think[layer, 1]
        return int(np.argmax(normal(x[-1]) @ self.say.T))

    def rotate(self, x: Floats, at: npt.NDArray[np.int64]) -> Floats:
        """Turn each pair of numbers by an angle that grows with the position."""
        angles = (at[:, None] * self.turns)[:, None, :]
        a, b = x[..., 0::2], x[..., 1::2]
        return np.concatenate((a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)), -1)


def normal(x: Floats) -> Floats:
    """To a mean square of 1."""
    return np.asarray(x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6))


@dataclass(eq=False)
class Request:
    """``tokens``: the prompt, then what has been generated. ``slots[i]`` holds the key and value of ``tokens[i]``."""

    tokens: list[int]
    wanted: int
    answer: list[int] = field(default_factory=list)
    slots: Slots = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    computed: int = 0
    node: triradix.Node | None = None


class Engine:
    """Runs requests, at most ``batch`` at a time, one token each at a step."""

    def __init__(self, model: Model, cache: triradix.PrefixCache | None, pages: int = 200, page_size: int = 4) -> None:
        self.model, self.cache = model, cache
        self.pool = Pool(pages, page_size, model.layers, model.heads, model.head)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.computed = self.cached = 0

    def step(self, batch: int = 4) -> list[Request]:
        """One token more for everybody. Returns who has finished."""
        while self.waiting and len(self.running) < batch and self.start(self.waiting[0]):
            self.running.append(self.waiting.popleft())
        if not self.running:
            raise MemoryError("the pool has no room for one request alone")
        for request in self.running:
            self.advance(request)
        finished = [request for request in self.running if len(request.answer) == request.wanted]
        for request in finished:
            self.finish(request)
        return finished

    def start(self, request: Request) -> bool:
        """Find what is cached of the prompt, hold it, take slots for the rest. False if the pool has too few."""
        missing = -(-(len(request.tokens) + request.wanted) // self.pool.page_size)
        if self.cache is not None:
            # Not the last token: something must be left to compute, or there is no next one.
            hit = self.cache.match_prefix(request.tokens[:-1])
            self.cache.inc_lock_ref(hit.node)
            request.node, request.slots, request.computed = hit.node, hit.indices, hit.length
            missing -= hit.length // self.pool.page_size
            short = missing - len(self.pool.free_pages)
            if short > 0:
                self.pool.give_back(self.cache.evict(short * self.pool.page_size).indices)
        if missing > len(self.pool.free_pages):
            if self.cache is not None and request.node is not None:
                self.cache.dec_lock_ref(request.node)
            return False
        self.cached += request.computed
        request.slots = np.concatenate((request.slots, self.pool.take(missing)))
        return True

    def advance(self, request: Request) -> None:
        """Compute what is new (the prompt's rest, or one token), and append the next token."""
        total = len(request.tokens)
        token = self.model.forward(request.tokens[request.computed :], request.slots[:total], self.pool)
        self.computed += total - request.computed
        request.computed = total
        request.tokens.append(token)
        request.answer.append(token)
        if len(request.answer) == 1:  # the prompt is done
            self.keep(request)

    def keep(self, request: Request) -> None:
        """Let the cache have what is computed, whole pages of it: from now on others may start there."""
        if self.cache is None or request.node is None:
            return
        held, done = request.node.length, request.computed
        kept = self.cache.insert(request.tokens[held:done], request.slots[held:done], start=request.node)
        # What somebody else has cached meanwhile is there twice: use the cache's, and free our own.
        twice = slice(held, kept.prefix_len)
        self.pool.give_back(request.slots[twice])
        request.slots[twice] = self.cache.path_indices(kept.node, held)[: kept.prefix_len - held]
        self.cache.inc_lock_ref(kept.node)
        self.cache.dec_lock_ref(request.node)
        request.node = kept.node

    def finish(self, request: Request) -> None:
        """Keep it all; what does not fill a page goes back to the pool."""
        self.keep(request)
        held = 0
        if self.cache is not None and request.node is not None:
            held = request.node.length
            self.cache.dec_lock_ref(request.node)
        self.pool.give_back(request.slots[held:])
        self.running.remove(request)


def prompts(count: int, seed: int = 0) -> list[list[int]]:
    """Questions behind one of three system prompts."""
    rng = np.random.default_rng(seed)
    systems = [rng.integers(128, size=90).tolist() for _ in range(3)]
    return [systems[rng.integers(3)] + rng.integers(128, size=rng.integers(3, 20)).tolist() for _ in range(count)]


def generate(engine: Engine, texts: list[list[int]], wanted: int, progress: Progress, name: str) -> list[list[int]]:
    """The answers, in the order of the prompts."""
    requests = [Request(list(tokens), wanted) for tokens in texts]
    engine.waiting.extend(requests)
    bar = progress.add_task(name, total=len(requests))
    while engine.waiting or engine.running:
        progress.advance(bar, len(engine.step()))
    return [request.answer for request in requests]


def main() -> None:
    table = Table("prefix cache", "tokens computed", "tokens cached", "seconds", "same answers")
    model, texts, answers = Model(), prompts(60), []
    with Progress(TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn()) as progress:
        for name in ("none", *(sys.argv[1:] or triradix.IMPLEMENTATIONS)):
            engine = Engine(model, None if name == "none" else triradix.create(name, page_size=4))
            began = time.perf_counter()
            answers.append(generate(engine, texts, 16, progress, name))
            seconds, same = time.perf_counter() - began, answers[-1] == answers[0]
            table.add_row(name, f"{engine.computed:,}", f"{engine.cached:,}", f"{seconds:.2f}", "yes" if same else "NO")
    Console().print(table)


if __name__ == "__main__":
    main()
