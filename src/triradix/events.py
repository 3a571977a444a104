"""KV events: what ``take_events()`` returns, in the words of SGLang's ``kv_events``.

A block hash is the first 8 bytes of the page's SHA-256 digest, as a big-endian signed 64-bit integer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BlockStored:
    """One insert made pages.

    ``block_hashes``: one for each new page, in path order. ``parent_block_hash``: of the page above the first of
    them, None if that is the root. ``token_ids``: the units of the new pages, flat (ints; pairs of ints for bigrams).
    ``block_size``: units a page. ``extra_key``: None, or the pair (extra_key, cache_salt).
    """

    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int] | list[tuple[int, int]]
    block_size: int
    lora_id: int | None = None
    medium: str | None = "GPU"
    extra_key: tuple[str | None, str | None] | None = None


@dataclass(frozen=True)
class BlockRemoved:
    """One evict freed pages; ``block_hashes`` are in the order of eviction."""

    block_hashes: list[int]
    medium: str | None = "GPU"


@dataclass(frozen=True)
class AllBlocksCleared:
    """One ``reset()``."""


KVCacheEvent = BlockStored | BlockRemoved | AllBlocksCleared
