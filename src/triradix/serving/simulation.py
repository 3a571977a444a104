"""SGLang's scheduler with a GPU that is only a number: a discrete-event model of continuous batching.

Its requests, its caches and every call between them are SGLang's own and ours, and are timed; only how long a forward
pass takes comes from a model (`triradix.serving.costs` for a GPU). So it says where the cache's time on the CPU begins
to show in the time to the first token, on a GPU that is not here. It is a simulation, and everything drawn from it says
so.

As in SGLang by default, a step is either prefill, which goes first, or decoding. Left out: tokenizing, sampling, HTTP,
and what the scheduler does beside the cache, for which a constant stands. Runs in the engine's environment.
"""

from __future__ import annotations

import random
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from sglang.srt.managers.schedule_batch import FINISH_LENGTH, Req
from sglang.srt.mem_cache.allocator import BaseTokenToKVPoolAllocator
from sglang.srt.mem_cache.base_prefix_cache import BasePrefixCache
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.common import checkpoint_kv_cache, evict_from_tree_cache, match_kv_cache, release_kv_cache
from sglang.srt.mem_cache.memory_pool import ReqToTokenPool
from sglang.srt.sampling.sampling_params import SamplingParams

from triradix.serving.costs import Gpu, Llm, pool_tokens, step_seconds

SCHEDULER_SECONDS = (0.001, 0.00001)
"""What the scheduler takes beside the cache: for a step, and for each request in it."""
_ROW = 2**15
"""The longest request, in tokens."""


@dataclass(frozen=True)
class Engine:
    """What there is beside the cache.

    ``step``: seconds of a forward pass, for prefills (new tokens and those before them) and decodes (tokens before the
    one made). ``rest``: seconds of the scheduler for a step, and for each request in it. ``chunk``: tokens that a step
    prefills at most; ``running``: requests at a time. ``matched_waiting``: the longest queue that is matched, and
    sorted by its hits, at every step; 128 is SGLang's own rule.
    """

    step: Callable[[Sequence[tuple[int, int]], Sequence[int]], float]
    pool_tokens: int
    page_size: int = 1
    chunk: int = 8192
    running: int = 512
    rest: tuple[float, float] = SCHEDULER_SECONDS
    matched_waiting: int = 128

    @classmethod
    def on(cls, gpu: Gpu, llm: Llm, **more: Any) -> Engine:
        return cls(partial(step_seconds, gpu, llm), pool_tokens(gpu, llm), **more)


Prompt: TypeAlias = "tuple[array[int], int]"
"""Tokens, and the length of the answer."""


@dataclass(frozen=True)
class Load:
    """``users`` talk at a time, each with a new request as soon as the last is answered.

    A prompt is one of ``shared`` system prompts of ``system`` tokens, the conversation so far (``history`` tokens a
    turn, up to ``turns`` of them), and ``question`` tokens of its own. ``idle`` conversations are in the cache already.
    """

    users: int
    requests: int
    system: int = 1000
    shared: int = 8
    history: int = 400
    turns: int = 6
    question: int = 100
    answer: int = 64
    idle: int = 0
    seed: int = 0


class Conversations:
    """The users of a `Load`."""

    def __init__(self, load: Load) -> None:
        self.load, self.at_a_time = load, min(load.users, load.requests)
        self._rng = random.Random(load.seed)
        self._systems = [self._words(load.system) for _ in range(load.shared)]
        self._asked = 0

    def idle(self) -> Iterable[Prompt]:
        """What is in the cache before anybody asks."""
        for _ in range(self.load.idle):
            yield self._rng.choice(self._systems) + self._words(self.load.history), 0

    def ask(self, before: array[int] | None, turn: int) -> tuple[Prompt, int] | None:
        """A prompt, and which turn of its conversation it is: the next of this one, or the first of another."""
        load = self.load
        if self._asked == load.requests:
            return None
        self._asked += 1
        if before is None or turn == load.turns:
            before, turn = self._rng.choice(self._systems), 0
        new = self._words(load.question if turn else load.question + load.history)
        return (before + new, load.answer), turn

    def _words(self, count: int) -> array[int]:
        return array("q", np.random.default_rng(self._rng.getrandbits(32)).integers(2**15, size=count).tolist())


class Listed:
    """Requests in order, so many at a time: as soon as one is answered the next is sent."""

    def __init__(self, prompts: Sequence[Prompt], at_a_time: int) -> None:
        self.at_a_time = min(at_a_time, len(prompts))
        self._left = iter(prompts)

    def idle(self) -> Iterable[Prompt]:
        return ()

    def ask(self, before: array[int] | None, turn: int) -> tuple[Prompt, int] | None:
        prompt = next(self._left, None)
        return None if prompt is None else (prompt, 0)


CLOCKS = ("overlap", "no overlap", "overlap, free cache", "no overlap, free cache")
"""Ways to add up one and the same schedule: the CPU prepares a step while the GPU computes the last one, or they take
turns; and both with a cache that takes no time."""


@dataclass
class Outcome:
    """Seconds, all of them; for each of `CLOCKS` when it ended, and the time to the first token of each request."""

    ended: dict[str, float] = field(default_factory=lambda: dict.fromkeys(CLOCKS, 0.0))
    first_token: dict[str, list[float]] = field(default_factory=lambda: {clock: [] for clock in CLOCKS})
    steps: list[tuple[float, float]] = field(default_factory=list)
    """Of each step the GPU's time and the cache's."""
    prompt_tokens: int = 0
    hit_tokens: int = 0
    finished: int = 0


class CountedPool(BaseTokenToKVPoolAllocator):  # type: ignore[misc]
    """A pool of which only the size matters: what it does is neither the cache's nor the GPU's time."""

    def __init__(self, size: int, page_size: int) -> None:
        super().__init__(size // page_size * page_size, page_size, torch.float32, "cpu", None, False)
        self.left: int
        self.clear()

    def clear(self) -> None:
        self.left = self.size

    def available_size(self) -> int:
        return self.left

    def alloc(self, need_size: int) -> torch.Tensor | None:
        """Any slots: what they hold is nobody's concern."""
        if need_size > self.left:
            return None
        self.left -= need_size
        return torch.arange(1).expand(need_size)

    def free(self, free_index: torch.Tensor) -> None:
        self.left += -(-len(free_index) // self.page_size) * self.page_size


class Simulation:
    """One engine with a cache, and its users."""

    def __init__(
        self,
        make_cache: Callable[[CacheInitParams], BasePrefixCache],
        engine: Engine,
        users: Conversations | Listed,
        away: float = 0.0,
    ) -> None:
        """``away``: seconds from a request's answer to the arrival of the next, on the clock without overlap."""
        self.engine, self.users, self.away = engine, users, away
        page_size = engine.page_size
        self.pool = CountedPool(engine.pool_tokens, page_size)
        self.rows = ReqToTokenPool(engine.running + 1, _ROW, "cpu", False)
        self.slots = torch.arange(_ROW)  # any will do: what they hold is nobody's concern
        self.cache = make_cache(
            CacheInitParams(
                disable=False, req_to_token_pool=self.rows, token_to_kv_pool_allocator=self.pool, page_size=page_size
            )
        )
        self.coming: deque[tuple[float, Req]] = deque()
        self.waiting: deque[Req] = deque()
        self.running: list[Req] = []
        self.chunked: Req | None = None
        self.turn: dict[str, int] = {}
        self.arrived: dict[str, dict[str, float]] = {}
        self.outcome = Outcome()
        self._spent = 0.0
        self._made = 0
        self._rng = random.Random(0)

    def run(self) -> Outcome:
        """All requests of the users, from the first to the last."""
        for prompt in self.users.idle():
            self._cache_idle(prompt)
        self._spent = 0.0
        for _ in range(self.users.at_a_time):
            self._ask(None, 0)
        while self.coming or self.waiting or self.running or self.chunked:
            self._arrive()
            self._step()
        return self.outcome

    def _timed(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        # Of this thread alone: what else runs on this machine is not the cache's time.
        began = time.thread_time()
        result = call(*arguments, **options)
        self._spent += time.thread_time() - began
        return result

    def _arrive(self) -> None:
        """Whoever is there by now waits; an idle engine's clocks go on to the next one."""
        ended = self.outcome.ended
        if self.coming and not (self.waiting or self.running or self.chunked):
            pause = max(0.0, self.coming[0][0] - ended["no overlap"])
            for clock in ended:
                ended[clock] += pause
        while self.coming and self.coming[0][0] <= ended["no overlap"]:
            _, req = self.coming.popleft()
            self.arrived[req.rid] = dict(ended)
            self.waiting.append(req)

    def _step(self) -> None:
        self._spent = 0.0
        starting = self._admit()
        decoding = [] if starting else list(self.running)
        prefills = [(req.extend_end - req.prefix_len, req.prefix_len) for req in starting]
        self._extend([(req, req.kv.kv_committed_len, req.kv.kv_committed_len + 1) for req in decoding])
        model = self.engine.step(prefills, [req.kv.kv_committed_len for req in decoding])
        first = [req for req in starting if req is not self.chunked]
        for req in starting:
            self._timed(checkpoint_kv_cache, req, self.cache)
        for req in first + decoding:
            req.output_ids.append(self._rng.randrange(_ROW))
        done = [req for req in first + decoding if len(req.output_ids) >= req.sampling_params.max_new_tokens]
        for req in done:
            req.finished_reason = FINISH_LENGTH(length=len(req.output_ids))
            self._timed(release_kv_cache, req, self.cache, checkpoint=True)
        self.running = [req for req in self.running + first if req not in done]
        step, each = self.engine.rest
        rest = step + each * len(starting + decoding)
        outcome = self.outcome
        outcome.steps.append((model, self._spent))
        outcome.ended["overlap"] += max(model, self._spent + rest)
        outcome.ended["no overlap"] += model + self._spent + rest
        outcome.ended["overlap, free cache"] += max(model, rest)
        outcome.ended["no overlap, free cache"] += model + rest
        for req in first:
            if len(req.output_ids) == 1:
                for clock, now in outcome.ended.items():
                    outcome.first_token[clock].append(now - self.arrived[req.rid][clock])
        for req in done:
            outcome.finished += 1
            self._ask(req.origin_input_ids + req.output_ids, self.turn[req.rid] + 1)

    def _admit(self) -> list[Req]:
        """What is prefilled at this step: at most a chunk of tokens, and what the pool has room for."""
        left, starting = self.engine.chunk, []
        if self.chunked is not None:
            req, self.chunked = self.chunked, None
            req.init_next_round_input()
            left -= self._prefill(req, left)
            starting.append(req)
        if len(self.waiting) <= self.engine.matched_waiting:
            for req in self.waiting:
                self._timed(match_kv_cache, req, self.cache)
            self.waiting = deque(sorted(self.waiting, key=lambda req: -req.num_matched_prefix_tokens))
        room_for = self.engine.running - len(self.running)
        while self.waiting and left > 0 and len(starting) < room_for and self.chunked is None:
            req = self.waiting[0]
            self._timed(req.init_next_round_input, self.cache)
            req.lock = self._timed(self.cache.lock, req.last_node)
            new = len(req.full_untruncated_fill_ids) - req.prefix_len
            promised = sum(self._to_come(other) for other in self.running + starting)
            room = self.pool.left + self.cache.evictable_size() - promised
            if new + self._to_come(req) > room and (self.running or starting):
                self._timed(self.cache.unlock, req.lock)
                req.lock = None
                break
            self.waiting.popleft()
            self.outcome.prompt_tokens += len(req.origin_input_ids)
            self.outcome.hit_tokens += req.prefix_len
            left -= self._prefill(req, left)
            starting.append(req)
        return starting

    def _to_come(self, req: Req) -> int:
        """Slots that it may still ask for while it decodes."""
        return int(req.sampling_params.max_new_tokens - len(req.output_ids) + 2 * self.engine.page_size)

    def _prefill(self, req: Req, most: int) -> int:
        start, whole = req.prefix_len, len(req.full_untruncated_fill_ids)
        end = min(whole, start + most)
        if not req.kv.holds_kv:
            hit = self._timed(self.cache.prefix_device_indices, req) if start else None
            self.rows.alloc([req])
            if hit is not None:
                self.rows.write((req.kv.req_pool_idx, slice(0, start)), hit)
        self._extend([(req, start, end)])
        req.extend_end = end
        if end < whole:
            self.chunked = req
        return int(end - start)

    def _extend(self, parts: list[tuple[Req, int, int]]) -> None:
        """Give each request slots for its positions from start to end; one allocation for all, as the engine does."""
        page = self.engine.page_size
        tokens = sum(-(-end // page) - -(-start // page) for _, start, end in parts) * page
        self._timed(evict_from_tree_cache, self.cache, tokens)
        if self.pool.alloc(tokens) is None:
            raise MemoryError(f"{self.users.at_a_time} users do not fit into a pool of {self.pool.size} tokens")
        for req, start, end in parts:
            self.rows.write((req.kv.req_pool_idx, slice(start, end)), self.slots[: end - start])
            req.kv.kv_allocated_len = req.kv.kv_committed_len = end

    def _ask(self, before: array[int] | None, turn: int) -> None:
        """A new request, if there are still some to come."""
        found = self.users.ask(before, turn)
        if found is None:
            return
        prompt, turn = found
        req = self._request(prompt)
        self.turn[req.rid] = turn
        self.coming.append((self.outcome.ended["no overlap"] + self.away, req))

    def _request(self, prompt: Prompt) -> Req:
        tokens, answer = prompt
        self._made += 1
        return Req(
            rid=f"request {self._made}",
            origin_input_text="",
            origin_input_ids=tokens,
            sampling_params=SamplingParams(temperature=0, max_new_tokens=answer),
        )

    def _cache_idle(self, prompt: Prompt) -> None:
        """A conversation that somebody had before: it is cached, and nobody holds it."""
        req = self._request(prompt)
        req.init_next_round_input(self.cache)
        req.lock = self.cache.lock(req.last_node)
        self._prefill(req, 2**30)
        req.finished_reason = FINISH_LENGTH(length=0)
        release_kv_cache(req, self.cache, checkpoint=True)
