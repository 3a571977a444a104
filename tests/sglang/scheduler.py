"""The steps of SGLang's scheduler around its cache, on real pools, without a model.

Each slot of the pool holds a fingerprint of the tokens up to its position, as a real one holds their keys and values.
Whoever is handed a slot can so be shown to have been handed the right one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import torch
from sglang.srt.managers.schedule_batch import FINISH_LENGTH, Req
from sglang.srt.mem_cache.allocator import TokenToKVPoolAllocator
from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.base_prefix_cache import BasePrefixCache
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.common import checkpoint_kv_cache, evict_from_tree_cache, release_kv_cache
from sglang.srt.mem_cache.memory_pool import ReqToTokenPool
from sglang.srt.sampling.sampling_params import SamplingParams

MakeCache = Callable[[CacheInitParams], BasePrefixCache]
_MODULUS = 2**61 - 1


class OutOfMemory(Exception):
    """The pool has no room, and nothing is left to evict."""


class Scheduler:
    """Requests in and out of one pool of ``size`` slots."""

    def __init__(
        self, make_cache: MakeCache, size: int = 512, page_size: int = 1, device: str = "cpu", **options: Any
    ) -> None:
        self.size, self.page_size, self.device = size // page_size * page_size, page_size, device
        self.rows = ReqToTokenPool(size=64, max_context_len=4096, device=device, enable_memory_saver=False)
        pool = {"dtype": torch.float32, "device": device, "kvcache": None, "need_sort": False}
        self.allocator: Any = (
            TokenToKVPoolAllocator(self.size, **pool)
            if page_size == 1
            else PagedTokenToKVPoolAllocator(self.size, page_size, **pool)
        )
        self.cache = make_cache(
            CacheInitParams(
                disable=options.pop("disable", False),
                req_to_token_pool=self.rows,
                token_to_kv_pool_allocator=self.allocator,
                page_size=page_size,
                **options,
            )
        )
        self.slots = torch.zeros(self.size + page_size, dtype=torch.int64, device=device)
        self.running: list[Req] = []
        self._made = 0

    def request(
        self, tokens: Sequence[int], extra_key: str | None = None, salt: str | None = None, priority: int | None = None
    ) -> Req:
        """One that waits."""
        self._made += 1
        return Req(
            rid=f"request {self._made}",
            origin_input_text="",
            origin_input_ids=array("q", tokens),
            sampling_params=SamplingParams(temperature=0, max_new_tokens=64),
            extra_key=extra_key,
            cache_salt=salt,
            priority=priority,
        )

    def admit(self, req: Req) -> int:
        """Match and lock it. Returns the length of the hit."""
        req.init_next_round_input(self.cache)
        req.lock = self.cache.lock(req.last_node)
        self.running.append(req)
        return int(req.prefix_len)

    def prefill(self, req: Req, up_to: int | None = None) -> None:
        """Compute its tokens up to there (all) and checkpoint them: a chunk, or the whole."""
        end = len(req.full_untruncated_fill_ids) if up_to is None else up_to
        start = req.prefix_len
        hit = None if req.kv.holds_kv or not start else self.cache.prefix_device_indices(req)
        slots = self._allocate(req, start, end, hit)
        if not req.kv.holds_kv:
            self.rows.alloc([req])
            if hit is not None:
                self.rows.write((req.kv.req_pool_idx, slice(0, start)), hit)
        self.rows.write((req.kv.req_pool_idx, slice(start, end)), slots)
        self._compute(req, start, end)
        req.extend_end = end
        req.kv.kv_allocated_len = req.kv.kv_committed_len = end
        checkpoint_kv_cache(req, self.cache)

    def decode(self, req: Req, token: int) -> None:
        """One more token."""
        position = req.kv.kv_committed_len
        slots = self._allocate(req, position, position + 1, None)
        req.output_ids.append(token)
        req.refresh_fill_ids()
        self.rows.write((req.kv.req_pool_idx, slice(position, position + 1)), slots)
        self._compute(req, position, position + 1)
        req.kv.kv_allocated_len = req.kv.kv_committed_len = position + 1

    def finish(self, req: Req) -> None:
        req.finished_reason = FINISH_LENGTH(length=len(req.output_ids))
        release_kv_cache(req, self.cache, checkpoint=True)
        self.running.remove(req)

    def retract(self, req: Req) -> None:
        """Take all from it: it waits again, with what it has generated."""
        if req.kv.holds_kv:
            release_kv_cache(req, self.cache, checkpoint=False)
        else:
            self.cache.unlock(req.lock)
        req.reset_for_retract()
        self.running.remove(req)

    def check(self) -> None:
        """No slot is lost or held twice, and each request sees its own tokens in all of its slots."""
        private = sum(
            -(-req.kv.kv_allocated_len // self.page_size) * self.page_size - req.kv.cache_protected_len
            for req in self.running
            if req.kv.holds_kv
        )
        sizes = {
            "available": self.allocator.available_size(),
            "evictable": self.cache.evictable_size(),
            "protected": self.cache.protected_size(),
            "private": private,
        }
        assert sum(sizes.values()) == self.size, sizes
        for req in self.running:
            if req.kv.holds_kv:
                done = req.kv.kv_committed_len
                row = self.rows.req_to_token[req.kv.req_pool_idx, :done].long()
                assert torch.equal(self.slots[row], self._fingerprints(req, done)), req.rid
        if hasattr(self.cache, "sanity_check"):
            self.cache.sanity_check()

    def _allocate(self, req: Req, start: int, end: int, hit: torch.Tensor | None) -> torch.Tensor:
        count = end - start
        if self.page_size == 1:
            evict_from_tree_cache(self.cache, count)
            slots = self.allocator.alloc(count)
        else:
            evict_from_tree_cache(self.cache, count + self.page_size)
            if start == 0:
                last = torch.tensor([-1], device=self.device)
            elif hit is not None:
                last = hit[-1:].long()
            else:
                last = self.rows.req_to_token[req.kv.req_pool_idx, start - 1 : start].long()
            before, after = torch.tensor([start]), torch.tensor([end])
            slots = self.allocator.alloc_extend(
                before.to(self.device), before, after.to(self.device), after, last, count
            )
        if slots is None:
            raise OutOfMemory
        return slots

    def _compute(self, req: Req, start: int, end: int) -> None:
        row = self.rows.req_to_token[req.kv.req_pool_idx, start:end].long()
        self.slots[row] = self._fingerprints(req, end)[start:].to(self.device)

    @staticmethod
    def _fingerprints(req: Req, end: int) -> torch.Tensor:
        value = hash((req.extra_key, req.cache_salt)) % _MODULUS
        values = []
        for token in (req.origin_input_ids + req.output_ids)[:end]:
            value = (value * 1_000_003 + token + 1) % _MODULUS
            values.append(value)
        return torch.tensor(values, dtype=torch.int64)
