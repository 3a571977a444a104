"""The prefix cache that SGLang's scheduler calls, over a tree that keeps `triradix.PrefixCache`.

A request's tokens only ever grow, and `Req.last_node` is a node of this cache. So a match begins where the request was
matched last, and a checkpoint where it was checkpointed last: what a request costs at a step is what is new in it.

Source of the interface: ``sglang.srt.mem_cache.base_prefix_cache`` and ``radix_cache``, 0.5.23. Lengths are in tokens
(bigrams for EAGLE), as there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sglang.srt.mem_cache.base_prefix_cache import (
    BasePrefixCache,
    DecLockRefParams,
    DecLockRefResult,
    EvictParams,
    EvictResult,
    IncLockRefResult,
    InsertParams,
    InsertResult,
    MatchPrefixParams,
    MatchResult,
    TreeLock,
)
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.events import KVCacheEventRecorder

import triradix
from triradix.sglang.events import Translation
from triradix.sglang.order import depth_first
from triradix.sglang.refusals import slru_threshold
from triradix.sglang.slots import SlotTable

# A lock is a count at a page: releasing it needs no receipt.
_RECEIPT = DecLockRefParams()
_HIGHEST_PRIORITY = 2**63 - 1
MATCH_ALL_WAITING = "TRIRADIX_MATCH_ALL_WAITING"
"""An environment variable of the engine: 1 makes ``supports_fast_match_prefix()`` true."""


class TriradixCache(BasePrefixCache):  # type: ignore[misc]
    """``params``: SGLang's ``CacheInitParams``. ``implementation``: one of `triradix.IMPLEMENTATIONS`."""

    def __init__(self, params: CacheInitParams, implementation: str) -> None:
        self.disable = params.disable
        self.req_to_token_pool = params.req_to_token_pool
        self.token_to_kv_pool_allocator = params.token_to_kv_pool_allocator
        self.page_size = params.page_size
        self.is_eagle = params.is_eagle
        allocator = params.token_to_kv_pool_allocator
        self.device = torch.device(getattr(allocator, "device", "cpu"))
        self.kv_events = KVCacheEventRecorder(
            enabled=params.enable_kv_cache_events and not self.disable,
            page_size=self.page_size,
            dynamo_format=params.dynamo_kv_event_format,
            lora_names=params.kv_event_lora_names,
        )
        self.kv_events.record_all_cleared()
        self._translation = Translation(self.kv_events) if self.kv_events.enabled else None
        # A disabled cache stays empty; how it would evict is neither built nor checked.
        policy = "lru" if self.disable else params.eviction_policy.lower()
        self._cache = triradix.create(
            implementation,
            page_size=self.page_size,
            eviction_policy=policy,
            bigram=self.is_eagle,
            slru_threshold=2 if self.disable else slru_threshold(params),
            enable_kv_cache_events=self.kv_events.enabled,
        )
        self._matches_all_waiting = not self.disable and os.environ.get(MATCH_ALL_WAITING, "0") == "1"
        self._raises_prompts = policy == "priority"
        # A bigram key has one token more than it has units.
        self._overlap = int(self.is_eagle)
        # No more can be cached than the pool holds.
        self._table = SlotTable(getattr(allocator, "size", 0), self.page_size, self.device)
        if params.enable_metrics:
            self.init_metrics_collector()
        self._find_root()

    # Finding

    def match_prefix(self, params: MatchPrefixParams) -> MatchResult:
        if self.disable:
            return self._miss
        found = self._match(params.key, params.req)
        node = found.node
        return MatchResult(found.length, node, node, node)

    def touch_prefix(self, key: Any) -> None:
        """Move what is cached of ``key`` to the most recently used.

        The engine hands over the tokens alone, and asks for requests that were never matched: so there is no node to
        begin at, and this walks from the root.
        """
        if not self.disable:
            self._match(key, None)

    def _match(self, key: Any, req: Any) -> triradix.MatchResult:
        tokens = key.token_ids
        end = len(tokens) if key.limit is None else min(key.limit, len(tokens))
        node = None if req is None else req.last_node
        if node is not None:
            start = node.length
            if 0 < start <= end - self._overlap:
                try:
                    return self._cache.match_prefix(memoryview(tokens)[start:end], start=node)
                except triradix.StaleNodeError:
                    pass  # evicted while the request waited
        if end < len(tokens):
            tokens = memoryview(tokens)[:end]
        return self._cache.match_prefix(tokens, (key.extra_key, key.cache_salt))

    def supports_fast_match_prefix(self) -> bool:
        """Whether the scheduler is to match every waiting request at every step, whatever its policy.

        Its load figures then know each hit, and what waits stays fresh. That is some 5 µs a request and step with a
        compiled tree, most of it SGLang's own: with thousands waiting it shows. So it has to be asked for.
        """
        return self._matches_all_waiting

    def supports_prefix_sharing(self) -> bool:
        return not self.disable

    def path_device_indices(self, node: triradix.Node) -> torch.Tensor:
        return self._table.find(self._cache.path_indices(node))

    def root_node_handle(self, extra_key: str | None = None) -> triradix.Node:
        return self.root_node if extra_key is None else self._cache.match_prefix((), extra_key).node

    def dfs_weight_order(self, node_handles: Sequence[triradix.Node]) -> list[int]:
        return depth_first([self._cache.path_indices(node)[:: self.page_size] for node in node_handles])

    # Keeping

    def checkpoint(self, req: Any, *, up_to: int, **kwargs: Any) -> None:
        """Cache what ``req`` has computed up to row position ``up_to``, whole pages of it.

        One insert, below the node that the request holds. Its row then shows the tree's slots; its own that the tree
        had already are freed; the lock moves on to the last page. O(what is new).
        """
        if self.disable:
            return
        kv, lock = req.kv, req.lock
        node = None if lock is None else lock.node
        start = 0 if node is None else node.length
        units = max(0, up_to - self._overlap) // self.page_size * self.page_size
        end = max(start, units)
        if end + self._overlap > up_to:
            return  # an EAGLE request that holds all of its bigrams already
        tokens = memoryview(req.full_untruncated_fill_ids)[start : end + self._overlap]
        row = self.req_to_token_pool.req_to_token[kv.req_pool_idx]
        priority = req.priority or 0
        result = self._insert(
            tokens, (req.extra_key, req.cache_salt or None), start, node, priority, kv.cache_inserted_len
        )
        known, length = result.prefix_len, result.length
        self._table.take(row[known:length])
        kv.cache_inserted_len = max(kv.cache_inserted_len, length)
        last = result.node
        owned = kv.cache_protected_len
        if known > owned:
            self.token_to_kv_pool_allocator.free_segment(row[owned:known], start_pos=owned)
            found = self._table.find(self._cache.path_indices(last, owned)[: known - owned])
            self.req_to_token_pool.write((kv.req_pool_idx, slice(owned, known)), found)
        kv.cache_protected_len = length
        if self._raises_prompts:
            self._raise_prompt(req, length, node, priority)
        if self._translation is not None:
            self._translation.publish(self._cache.take_events(), req.session_id)
        if node is None or length > start:
            req.lock = self.lock(last)
            self.unlock(lock)
        req.last_node = last

    def _insert(
        self,
        tokens: Any,
        namespace: tuple[str | None, str | None],
        start: int,
        node: triradix.Node | None,
        priority: int,
        inserted_len: int,
    ) -> triradix.InsertResult:
        """Below ``node``, of length ``start``; from the root if that is 0. The ids offered are not taken yet."""
        values = self._table.offer(len(tokens) - self._overlap, self._overlap) if len(tokens) else tokens
        if start:
            return self._cache.insert(tokens, values, start=node, priority=priority, inserted_len=inserted_len)
        return self._cache.insert(tokens, values, namespace, priority=priority, inserted_len=inserted_len)

    def _raise_prompt(self, req: Any, length: int, node: triradix.Node | None, priority: int) -> None:
        """Let the answer go before its prompt: an insert of nothing at the prompt's last page, one priority higher."""
        overlap = self._overlap
        prompt = max(0, len(req.origin_input_ids) - overlap) // self.page_size * self.page_size
        if not 0 < prompt < length:
            return
        tokens = memoryview(req.full_untruncated_fill_ids)
        if node is None or node.length != prompt:
            namespace = (req.extra_key, req.cache_salt or None)
            node = self._cache.match_prefix(tokens[: prompt + overlap], namespace).node
        nothing = tokens[prompt : prompt + overlap]
        raised = min(priority + 1, _HIGHEST_PRIORITY)
        self._cache.insert(nothing, nothing, start=node, priority=raised, inserted_len=prompt)

    def insert(self, params: InsertParams) -> InsertResult:
        """Cache ``params.value``, slots on the device, for ``params.key``; duplicates stay the caller's to free.

        Without a value the tokens stand for the slots, as in SGLang's own tree. Requests go through `checkpoint`.
        """
        if self.disable:
            return InsertResult(prefix_len=0)
        key = params.key
        tokens = memoryview(key.token_ids)[: key.limit]
        units = max(0, len(tokens) - self._overlap) // self.page_size * self.page_size
        cut = tokens[: units + self._overlap] if units else tokens[:0]
        slots = torch.tensor(cut, dtype=torch.int64) if params.value is None else params.value
        namespace = (key.extra_key, key.cache_salt)
        result = self._insert(cut, namespace, 0, None, params.priority or 0, params.inserted_len)
        self._table.take(slots[result.prefix_len : result.length])
        if self._translation is not None:
            self._translation.publish(self._cache.take_events(), params.session_id)
        return InsertResult(prefix_len=result.prefix_len, total_len=result.length, last_device_node=result.node)

    # Locking

    def lock(self, node: triradix.Node) -> TreeLock:
        if not self.disable:
            self._cache.inc_lock_ref(node)
        return TreeLock(node, _RECEIPT)

    def unlock(self, lock: TreeLock | None) -> None:
        if lock is not None and not self.disable:
            self._cache.dec_lock_ref(lock.node)

    def inc_lock_ref(self, node: triradix.Node) -> IncLockRefResult:
        return IncLockRefResult(delta=0 if self.disable else -self._cache.inc_lock_ref(node))

    def dec_lock_ref(self, node: triradix.Node, params: DecLockRefParams | None = None) -> DecLockRefResult:
        return DecLockRefResult(delta=0 if self.disable else self._cache.dec_lock_ref(node))

    # Freeing

    def evict(self, params: EvictParams) -> EvictResult:
        if self.disable:
            return EvictResult()
        began = time.perf_counter()
        freed = self._cache.evict(params.num_tokens)
        count = freed.num_tokens
        if count:
            # Each page of it is whole and in order, which is all that a segment's beginning stands for.
            self.token_to_kv_pool_allocator.free_segment(self._table.give_back(freed.indices), start_pos=0)
            if self._translation is not None:
                self._translation.publish(self._cache.take_events())
        self.update_eviction_metrics(count, began)
        return EvictResult(num_tokens_evicted=count)

    def reset(self) -> None:
        self._cache.reset()
        self._table.reset()
        if self._translation is not None:
            self._translation.publish(self._cache.take_events())
        self._find_root()

    def _find_root(self) -> None:
        self.root_node = node = self._cache.match_prefix(()).node
        self._miss = MatchResult(0, node, node, node)

    # Looking

    def evictable_size(self) -> int:
        return self._cache.evictable_size()

    def protected_size(self) -> int:
        return self._cache.protected_size()

    def total_size(self) -> int:
        return self._cache.total_size()

    def all_values_flatten(self) -> torch.Tensor:
        return self._table.find(self._cache.all_indices())

    def pretty_print(self) -> None:
        self._cache.pretty_print()

    def sanity_check(self) -> None:
        """Walk every invariant of the tree and of the table; `triradix.IntegrityError` names the one that broke."""
        self._cache.check()
        ids = np.unique(self._cache.all_indices())
        if not len(ids) == self._table.used == self._cache.total_size():
            raise triradix.IntegrityError(
                f"{self._cache.total_size()} units are cached under {len(ids)} ids, and {self._table.used} are taken"
            )
