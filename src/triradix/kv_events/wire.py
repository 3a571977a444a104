"""The bytes of a batch of events, as SGLang's subscribers read them.

A batch is the msgpack array ``[time, events, data-parallel rank]``. An event is a map whose ``type`` is the name of its
class; fields without a value are left out where SGLang leaves them out. The namespace of a page is in its hashes
already: of the pair only the salt has a field.

Source: ``sglang.srt.disaggregation.kv_events``, 0.5.23.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from triradix.events import BlockRemoved, BlockStored, KVCacheEvent

_encoder = msgspec.msgpack.Encoder()


def encode_batch(events: Iterable[KVCacheEvent], timestamp: float, dp_rank: int | None = None) -> bytes:
    """``events`` in their order; ``timestamp`` in seconds since the epoch."""
    return _encoder.encode([timestamp, [_fields(event) for event in events], dp_rank])


def _fields(event: KVCacheEvent) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": type(event).__name__}
    if isinstance(event, BlockStored):
        fields |= {
            "block_hashes": event.block_hashes,
            "parent_block_hash": event.parent_block_hash,
            "token_ids": event.token_ids,
            "block_size": event.block_size,
            "lora_id": event.lora_id,
        }
        if event.medium is not None:
            fields["medium"] = event.medium
        if event.extra_key is not None and event.extra_key[1] is not None:
            fields["cache_salt"] = event.extra_key[1]
    elif isinstance(event, BlockRemoved):
        fields["block_hashes"] = event.block_hashes
        if event.medium is not None:
            fields["medium"] = event.medium
    return fields
