"""SGLang's scheduler with a GPU that is only a number: a discrete-event model of continuous batching.

Its requests, its caches and every call between them are SGLang's own and ours, and are timed; only the steps of the GPU
come from `triradix.serving.costs`. So it says where the cache's time on the CPU begins to show in the time to the first
token, on a GPU that is not here. It is a simulation, and everything drawn from it says so.

Left out: tokenizing, sampling, HTTP, and what the scheduler does beside the cache, for which a constant stands.
Runs in the engine's environment.
"""

from __future__ import annotations

import random
import time
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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
_CHUNK = 8192
_RUNNING = 512


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
    """One engine: a cache, a pool of the size that the GPU has room for, and its users."""

    def __init__(
        self,
        make_cache: Callable[[CacheInitParams], BasePrefixCache],
        gpu: Gpu,
        llm: Llm,
        load: Load,
        *,
        page_size: int = 1,
        matched_waiting: int = 128,
    ) -> None:
        """``matched_waiting``: the longest queue that is matched, and sorted by its hits, at every step.

        128 is SGLang's own rule.
        """
        self.gpu, self.llm, self.load = gpu, llm, load
        self.matched_waiting, self.page_size = matched_waiting, page_size
        self.pool = CountedPool(pool_tokens(gpu, llm), page_size)
        self.rows = ReqToTokenPool(_RUNNING + 1, 2**15, "cpu", False)
        self.slots = torch.arange(2**15)  # any will do: what they hold is nobody's concern
        self.cache = make_cache(
            CacheInitParams(
                disable=False, req_to_token_pool=self.rows, token_to_kv_pool_allocator=self.pool, page_size=page_size
            )
        )
        self.rng = random.Random(load.seed)
        self.systems = [self._words(load.system) for _ in range(load.shared)]
        self.waiting: deque[Req] = deque()
        self.running: list[Req] = []
        self.chunked: Req | None = None
        self.turn: dict[str, int] = {}
        self.arrived: dict[str, dict[str, float]] = {}
        self.asked = 0
        self.outcome = Outcome()
        self._spent = 0.0

    def run(self) -> Outcome:
        """All requests of the load, from the first to the last."""
        for _ in range(self.load.idle):
            self._cache_idle()
        self._spent = 0.0
        for _ in range(min(self.load.users, self.load.requests)):
            self._ask(self.rng.choice(self.systems), 0)
        while self.waiting or self.running or self.chunked:
            self._step()
        return self.outcome

    def _timed(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        # Of this thread alone: what else runs on this machine is not the cache's time.
        began = time.thread_time()
        result = call(*arguments, **options)
        self._spent += time.thread_time() - began
        return result

    def _step(self) -> None:
        self._spent = 0.0
        decoding = list(self.running)
        starting = self._admit()
        prefills = [(req.extend_end - req.prefix_len, req.prefix_len) for req in starting]
        self._extend([(req, req.kv.kv_committed_len, req.kv.kv_committed_len + 1) for req in decoding])
        gpu = step_seconds(self.gpu, self.llm, prefills, [req.kv.kv_committed_len for req in decoding])
        first = [req for req in starting if req is not self.chunked]
        for req in starting:
            self._timed(checkpoint_kv_cache, req, self.cache)
        for req in first + decoding:
            req.output_ids.append(self.rng.randrange(2**15))
        done = [req for req in first + decoding if len(req.output_ids) >= self.load.answer]
        for req in done:
            req.finished_reason = FINISH_LENGTH(length=len(req.output_ids))
            self._timed(release_kv_cache, req, self.cache, checkpoint=True)
        self.running = [req for req in decoding + first if req not in done]
        rest = SCHEDULER_SECONDS[0] + SCHEDULER_SECONDS[1] * len(starting + decoding)
        outcome = self.outcome
        outcome.steps.append((gpu, self._spent))
        outcome.ended["overlap"] += max(gpu, self._spent + rest)
        outcome.ended["no overlap"] += gpu + self._spent + rest
        outcome.ended["overlap, free cache"] += max(gpu, rest)
        outcome.ended["no overlap, free cache"] += gpu + rest
        for req in first:
            if len(req.output_ids) == 1:
                for clock, now in outcome.ended.items():
                    outcome.first_token[clock].append(now - self.arrived[req.rid][clock])
        for req in done:
            self.outcome.finished += 1
            self._ask(req.origin_input_ids + req.output_ids, self.turn[req.rid] + 1)

    def _admit(self) -> list[Req]:
        """What is prefilled at this step: at most a chunk of tokens, and what the pool has room for."""
        left, starting = _CHUNK, []
        if self.chunked is not None:
            req, self.chunked = self.chunked, None
            req.init_next_round_input()
            left -= self._prefill(req, left)
            starting.append(req)
        if len(self.waiting) <= self.matched_waiting:
            for req in self.waiting:
                self._timed(match_kv_cache, req, self.cache)
            self.waiting = deque(sorted(self.waiting, key=lambda req: -req.num_matched_prefix_tokens))
        while self.waiting and left > 0 and len(self.running) + len(starting) < _RUNNING and self.chunked is None:
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
        return self.load.answer - len(req.output_ids) + 2 * self.page_size

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
        tokens = (
            sum(-(-end // self.page_size) - -(-start // self.page_size) for _, start, end in parts) * self.page_size
        )
        self._timed(evict_from_tree_cache, self.cache, tokens)
        if self.pool.alloc(tokens) is None:
            raise MemoryError(f"{self.load.users} users do not fit into a pool of {self.pool.size} tokens")
        for req, start, end in parts:
            self.rows.write((req.kv.req_pool_idx, slice(start, end)), self.slots[: end - start])
            req.kv.kv_allocated_len = req.kv.kv_committed_len = end

    def _ask(self, before: array[int], turn: int) -> None:
        """A new request, if there are still some to come: the next turn, or another conversation."""
        if self.asked == self.load.requests:
            return
        self.asked += 1
        if turn == self.load.turns:
            before, turn = self.rng.choice(self.systems), 0
        new = self._words(self.load.question if turn else self.load.question + self.load.history)
        req = self._request(before + new)
        self.turn[req.rid], self.arrived[req.rid] = turn, dict(self.outcome.ended)
        self.waiting.append(req)

    def _request(self, tokens: array[int]) -> Req:
        return Req(
            rid=f"request {self.asked} {self.rng.random()}",
            origin_input_text="",
            origin_input_ids=tokens,
            sampling_params=SamplingParams(temperature=0, max_new_tokens=self.load.answer),
        )

    def _cache_idle(self) -> None:
        """A conversation that somebody had before: it is cached, and nobody holds it."""
        req = self._request(self.rng.choice(self.systems) + self._words(self.load.history))
        req.init_next_round_input(self.cache)
        req.lock = self.cache.lock(req.last_node)
        self._prefill(req, 2**30)
        req.finished_reason = FINISH_LENGTH(length=0)
        release_kv_cache(req, self.cache, checkpoint=True)

    def _words(self, count: int) -> array[int]:
        return array("q", np.random.default_rng(self.rng.getrandbits(32)).integers(2**15, size=count).tolist())
