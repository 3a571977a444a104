"""KV events as SGLang sends them: its classes, its hashes, its way to put neighbours together.

The digests of the trees are SGLang's storage hashes. In a namespace its events use another chain: seeded by the salt
alone, and then bound to the adapter, or in Dynamo's format to the whole namespace. So for pages of a namespace that
chain is computed here, and kept while they are cached: what an eviction names must be what the insert named.

Source: ``sglang.srt.mem_cache.events`` and ``utils``, 0.5.23.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from sglang.srt.disaggregation import kv_events as wire
from sglang.srt.mem_cache.events import KVCacheEventRecorder

from triradix.events import BlockRemoved, BlockStored, KVCacheEvent

_SALT_SEED = b"sglang-cache-salt-v1\0"


class Translation:
    """Puts the events of a cache into SGLang's recorder."""

    def __init__(self, recorder: KVCacheEventRecorder) -> None:
        self._recorder = recorder
        # Our hash of a page in a namespace -> SGLang's digest of it, and the hash that was published.
        self._named: dict[int, tuple[bytes, int]] = {}

    def publish(self, events: Iterable[KVCacheEvent], session_id: str | None = None) -> None:
        """``session_id``: of the request that made the events, if any."""
        for event in events:
            if isinstance(event, BlockStored):
                self._stored(event, session_id)
            elif isinstance(event, BlockRemoved):
                hashes = [self._named.pop(block, (b"", block))[1] for block in event.block_hashes]
                self._recorder.enqueue(wire.BlockRemoved(block_hashes=hashes, medium=wire.StorageMedium.GPU))
            else:
                self._named.clear()
                self._recorder.record_all_cleared()

    def _stored(self, event: BlockStored, session_id: str | None) -> None:
        hashes, parent = event.block_hashes, event.parent_block_hash
        extra_key, salt = event.extra_key or (None, None)
        names = self._recorder.lora_names
        dynamo = self._recorder.dynamo_format
        if event.extra_key is not None:
            seed = wire.kv_event_namespace_seed(
                extra_key=extra_key if dynamo or names.get(extra_key) is not None else None,
                cache_salt=salt if dynamo else None,
            )
            hashes, parent = self._renamed(event, salt, seed)
        self._recorder.enqueue(
            wire.BlockStored(
                block_hashes=list(hashes),
                parent_block_hash=parent,
                token_ids=list(event.token_ids),
                block_size=event.block_size,
                lora_id=None,
                medium=wire.StorageMedium.GPU,
                cache_salt=salt,
                session_id=session_id,
                lora_name=names.resolve(extra_key) if dynamo else names.get(extra_key),
            )
        )

    def _renamed(self, event: BlockStored, salt: str | None, seed: bytes | None) -> tuple[list[int], int | None]:
        """SGLang's hashes of the pages, and of the page above them."""
        if event.parent_block_hash is not None:
            digest, parent = self._named[event.parent_block_hash]
        else:
            digest, parent = hashlib.sha256(_SALT_SEED + salt.encode()).digest() if salt is not None else b"", None
        words = np.asarray(event.token_ids, dtype="<u4").reshape(len(event.block_hashes), -1)
        hashes = []
        for block, page in zip(event.block_hashes, words, strict=True):
            digest = hashlib.sha256(digest + page.tobytes()).digest()
            plain = int.from_bytes(digest[:8], "big", signed=True)
            hashes.append(wire.namespaced_block_hash(plain, namespace_seed=seed))
            self._named[block] = digest, hashes[-1]
        return hashes, parent
