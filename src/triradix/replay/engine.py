"""The scheduler of an engine, as far as the cache sees it: match, lock, allocate, evict, insert, unlock.

One step of the loop prefills up to ``chunk`` tokens, in order of arrival, and lets every prefilled request decode
`DECODED_A_STEP` tokens. Only the request at the head of the line allocates: its chunk's slots, with the last chunk also
those of its output. When the pool is short it evicts; when that is not enough, since others hold locks, it waits for
them to finish. So a request that fits the pool alone is served, and nobody waits for ever.

Everything is decided by the trace, the settings and the cache's answers: equal caches get equal calls.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter_ns

import numpy as np

from triradix.keys import Slots, Tokens
from triradix.protocol import PrefixCache
from triradix.replay.pool import SlotPool
from triradix.replay.recorder import Recorder
from triradix.replay.requests import Request, text_length, text_tokens
from triradix.results import InsertResult, MatchResult, Node

DECODED_A_STEP = 64


class Flight:
    """A request that has been admitted. It holds a lock on ``node``, the last page that is cached of it.

    ``slots[i]`` is the slot of token i: below ``cached`` the cache's, from there up to ``allocated`` its own. Tokens
    below ``computed`` have their keys and values; ``cached`` lags behind it by less than a page.
    """

    __slots__ = ("allocated", "cached", "computed", "inserted", "node", "number", "prompt", "slots", "steps", "tokens")

    def __init__(self, number: int, tokens: Tokens, prompt: int, match: MatchResult, page_size: int) -> None:
        self.number = number
        self.tokens = tokens
        self.prompt = prompt
        self.node: Node = match.node
        self.cached = self.computed = self.allocated = match.length
        self.inserted = 0  # what this request itself inserted so far: no hit when its next chunk passes over it
        self.slots: Slots = np.empty(whole_pages(len(tokens), page_size), np.int64)
        self.steps = -(-(len(tokens) - prompt) // DECODED_A_STEP)


class Engine:
    """Drives ``cache`` over the slots of ``pool``, and times each call of it alone."""

    def __init__(
        self,
        cache: PrefixCache,
        pool: SlotPool,
        recorder: Recorder,
        *,
        chunk: int,
        concurrency: int,
        with_output: bool,
    ) -> None:
        self._cache = cache
        self._pool = pool
        self._recorder = recorder
        self._chunk = chunk
        self._concurrency = concurrency
        self._with_output = with_output

    def run(self, requests: Sequence[Request], progress: Callable[[int], None]) -> None:
        """Serve all requests; ``progress`` is told how many have come in so far."""
        waiting = deque(enumerate(requests))
        head: Flight | None = None
        decoding: list[Flight] = []
        while waiting or head or decoding:
            budget = self._chunk
            while budget > 0:
                if head is None:
                    if not waiting or len(decoding) >= self._concurrency:
                        break
                    number, request = waiting.popleft()
                    head = self._admit(number, request)
                    progress(number + 1)
                    if head is None:
                        continue
                end = min(head.computed + budget, head.prompt)
                budget -= end - head.computed
                if not self._prefill(head, end):
                    if not decoding:
                        raise RuntimeError(f"request {head.number} fits the pool, but slots are missing: they leaked")
                    break
                if end == head.prompt:
                    decoding.append(head)
                    head = None
            decoding = self._decode(decoding)

    def _admit(self, number: int, request: Request) -> Flight | None:
        """Match and lock; None if the pool could not even hold this request alone."""
        prompt = text_length(request.prompt)
        self._recorder.prompt[number] = prompt
        needed = prompt + (text_length(request.output) if self._with_output else 0)
        capacity = self._pool.capacity
        if capacity is not None and whole_pages(needed, self._pool.page_size) > capacity:
            return None
        prompt_tokens = text_tokens(request.prompt)
        tokens = prompt_tokens
        if self._with_output:
            tokens = np.concatenate((prompt_tokens, text_tokens(request.output)))

        begin = perf_counter_ns()
        match = self._cache.match_prefix(prompt_tokens, request.extra_key)
        self._note("match", number, perf_counter_ns() - begin)
        begin = perf_counter_ns()
        indices = match.indices
        self._note("indices", number, perf_counter_ns() - begin)

        flight = Flight(number, tokens, prompt, match, self._pool.page_size)
        flight.slots[: match.length] = indices
        self._lock(flight, match.node)
        self._recorder.hit[number] = match.length
        self._digest(number, indices)
        return flight

    def _prefill(self, flight: Flight, end: int) -> bool:
        """Compute and insert the prompt up to ``end``; False if the slots for it cannot be had now."""
        last = end == flight.prompt
        if not self._allocate(flight, len(flight.tokens) if last else end):
            return False
        if end > flight.computed:
            flight.computed = end
            old = flight.node
            result = self._insert(flight, end)
            flight.inserted = result.length
            self._lock(flight, result.node)
            self._unlock(flight, old)
        return True

    def _allocate(self, flight: Flight, end: int) -> bool:
        """Give the request whole pages of slots up to token ``end``, and evict others' for them if need be."""
        target = whole_pages(end, self._pool.page_size)
        needed = target - flight.allocated
        missing = self._pool.missing(needed)
        if missing > self._cache.evictable_size():
            return False
        if missing:
            begin = perf_counter_ns()
            result = self._cache.evict(missing)
            freed = result.indices
            self._note("evict", flight.number, perf_counter_ns() - begin)
            self._pool.give_back(freed)
            self._recorder.evicted[flight.number] += result.num_tokens
            self._digest(flight.number, freed)
        flight.slots[flight.allocated : target] = self._pool.take(needed)
        flight.allocated = target
        return True

    def _insert(self, flight: Flight, end: int) -> InsertResult:
        """Insert tokens up to ``end`` below the request's node; slots of pages that others cached first are freed."""
        start, length = flight.node, flight.cached
        key, values = flight.tokens[length:end], flight.slots[length:end]
        begin = perf_counter_ns()
        result = self._cache.insert(key, values, start=start, inserted_len=flight.inserted)
        self._note("insert", flight.number, perf_counter_ns() - begin)
        if result.prefix_len > length:
            duplicates = flight.slots[length : result.prefix_len]
            self._pool.give_back(duplicates)
            begin = perf_counter_ns()
            indices = self._cache.path_indices(result.node, length)
            self._note("indices", flight.number, perf_counter_ns() - begin)
            duplicates[:] = indices[: len(duplicates)]
        flight.node, flight.cached = result.node, result.length
        self._digest(flight.number, np.array([result.prefix_len, result.length]))
        return result

    def _decode(self, decoding: list[Flight]) -> list[Flight]:
        """One step of all prefilled requests; returns those that go on."""
        going_on = []
        for flight in decoding:
            flight.steps -= 1
            if flight.steps > 0:
                going_on.append(flight)
            else:
                self._finish(flight)
        return going_on

    def _finish(self, flight: Flight) -> None:
        """Insert what is left, the output above all; the slots of the last, partial page go back to the pool."""
        locked = flight.node
        result = self._insert(flight, len(flight.tokens))
        self._pool.give_back(flight.slots[result.length : flight.allocated])
        self._unlock(flight, locked)

    def _lock(self, flight: Flight, node: Node) -> None:
        begin = perf_counter_ns()
        self._cache.inc_lock_ref(node)
        self._note("lock", flight.number, perf_counter_ns() - begin)

    def _unlock(self, flight: Flight, node: Node) -> None:
        begin = perf_counter_ns()
        self._cache.dec_lock_ref(node)
        self._note("unlock", flight.number, perf_counter_ns() - begin)

    def _note(self, operation: str, number: int, nanoseconds: int) -> None:
        self._recorder.operations[operation].append(nanoseconds)
        self._recorder.time_ns[number] += nanoseconds

    def _digest(self, number: int, answer: Slots) -> None:
        self._recorder.digest[number] = zlib.crc32(answer.tobytes(), int(self._recorder.digest[number]))


def whole_pages(tokens: int, page_size: int) -> int:
    """``tokens``, rounded up to whole pages."""
    return -(-tokens // page_size) * page_size
