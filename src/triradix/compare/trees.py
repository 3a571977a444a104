"""The adapters of our three trees: the public API, as a user calls it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

import triradix
from triradix.compare.adapter import Adapter, Node, Tokens


class Tree(Adapter):
    """A lock's handle is the node itself. A match is timed without its ``indices``, which are made on first use."""

    implementation: ClassVar[str]
    calls: ClassVar[dict[str, str | tuple[str, str]]] = {
        "match": "match_prefix(key)",
        "match of a list": "match_prefix(key)",
        "match with a PrefixKey": "match_prefix(key)",
        "match with its slots": "match_prefix(key).indices",
        "match below a node": "match_prefix(new, start=node)",
        "insert": "insert(key, values)",
        "insert below a node": ("keep(insert(new, values, start=node).node)", "keep(node)"),
        "lock": ("keep(node); inc_lock_ref(node)", "keep(node)"),
        "unlock": "dec_lock_ref(handle)",
        "evict": "evict(tokens).indices",
        "match of many": "match_prefix_many(keys, threads=1)",
    }

    @classmethod
    def prepare(cls) -> None:
        triradix.create(cls.implementation)
        cls.version = triradix.__version__

    def __init__(self, page_size: int = 1) -> None:
        super().__init__(page_size)
        self.cache = triradix.create(self.implementation, page_size=page_size)

    def names(self) -> dict[str, Any]:
        methods = ("match_prefix", "match_prefix_many", "insert", "inc_lock_ref", "dec_lock_ref", "evict")
        return {name: getattr(self.cache, name) for name in methods}

    def key_u32(self, tokens: Tokens) -> Any:
        return array("I", tokens.astype(np.uint32).tobytes())

    def prefix_key(self, tokens: Tokens) -> Any:
        return triradix.PrefixKey(tokens)

    def values(self, slots: Tokens) -> Any:
        return slots

    def match(self, key: Any) -> tuple[int, Node]:
        found = self.cache.match_prefix(key)
        return found.length, found.node

    def insert(self, key: Any, values: Any) -> int:
        return self.cache.insert(key, values).prefix_len

    def slots(self, key: Any) -> list[int]:
        found: list[int] = self.cache.match_prefix(key).indices.tolist()
        return found

    def evict(self, tokens: int) -> int:
        return self.cache.evict(tokens).num_tokens

    def freed(self, tokens: int) -> Iterable[int]:
        slots: list[int] = self.once("evict", tokens=tokens).tolist()
        return slots

    def protected(self) -> int:
        return self.cache.protected_size()


class Reference(Tree):
    implementation = "reference"


class Cython(Tree):
    implementation = "cython"


class Rust(Tree):
    implementation = "rust"
