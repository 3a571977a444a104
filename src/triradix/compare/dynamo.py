"""The adapter of NVIDIA Dynamo's `RadixTree`: a router's index of hashed blocks.

It says which worker holds how many blocks of a prompt. It has no pages of one token worth the name, no slots, no locks
and no eviction; a match hashes the prompt's blocks and asks a thread of the tree's own.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.metadata import version
from typing import Any, ClassVar

from triradix.compare.adapter import Adapter, CannotDo, Node, Tokens


class BlockIndex(Adapter):
    _module: ClassVar[Any] = None
    calls: ClassVar[dict[str, str | tuple[str, str]]] = {"match": "find_matches(block_hashes(key, page_size))"}

    @classmethod
    def prepare(cls) -> None:
        cls._module = import_module("dynamo._core")
        cls.version = version("ai-dynamo-runtime")

    def __init__(self, page_size: int = 1) -> None:
        if page_size == 1:
            raise CannotDo("indexes hashed blocks, not tokens: see the rows of larger pages")
        super().__init__(page_size)
        self.tree = self._module.RadixTree()
        self.events = 0

    def names(self) -> dict[str, Any]:
        return {
            "find_matches": self.tree.find_matches,
            "block_hashes": self._module.compute_block_hash_for_seq,
            "page_size": self.page_size,
        }

    def values(self, slots: Tokens) -> Any:
        return None

    def match(self, key: Any) -> tuple[int, Node]:
        scores = self.tree.find_matches(self._module.compute_block_hash_for_seq(key, self.page_size)).scores
        return self.page_size * max(scores.values(), default=0), None

    def insert(self, key: Any, values: Any) -> int:
        known = self.match(key)[0]
        hashes = self._module.compute_block_hash_for_seq(key, self.page_size)
        # The index takes any number that names a block and its past; here the position and the hash do.
        blocks = [{"block_hash": hash(pair) & (2**63 - 1), "tokens_hash": pair[1]} for pair in enumerate(hashes)]
        self.events += 1
        event = {"event_id": self.events, "dp_rank": 0, "data": {"stored": {"parent_hash": None, "blocks": blocks}}}
        self.tree.apply_event(0, json.dumps(event).encode())
        return known
