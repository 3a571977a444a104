"""The adapters of SGLang's trees: `RadixCache` in Python, and its Rust tree with and without the Python around it.

A key is an `array('q')`, as its scheduler holds it; the `RadixKey` around it is made in the call, as the scheduler
does. A match gives a length and a node, and the slots are fetched apart. What an eviction frees is handed to the
allocator in tensors; here it keeps them.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from triradix.compare.adapter import Adapter, Node, Tokens
from triradix.compare.sglang_loader import install

_MEM_CACHE = "sglang.srt.mem_cache"


class Allocator:
    """Takes what an eviction frees, as a pool of KV slots would."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.freed: list[Any] = []

    def free(self, slots: Any) -> None:
        self.freed.append(slots)

    def free_segment(self, slots: Any, start_pos: int = 0) -> None:
        self.freed.append(slots)

    def available_size(self) -> int:
        return 0


class PythonTree(Adapter):
    """`RadixCache`."""

    _modules: ClassVar[dict[str, Any]] = {}
    calls: ClassVar[dict[str, str | tuple[str, str]]] = {
        "match": "match_prefix(MatchPrefixParams(key=RadixKey(key)))",
        "match of a list": "match_prefix(MatchPrefixParams(key=RadixKey(array('q', key))))",
        "match with its slots": "path_slots(match_prefix(MatchPrefixParams(key=RadixKey(key))).last_device_node)",
        "match below a node": "match_prefix(MatchPrefixParams(key=RadixKey(whole)))",
        "insert": "insert(InsertParams(key=RadixKey(key), value=values))",
        "lock": ("keep(lock(node))", "keep(node)"),
        "unlock": "unlock(handle)",
        "evict": "evict(EvictParams(num_tokens=tokens))",
    }

    @classmethod
    def prepare(cls) -> None:
        if not cls._modules:
            root = os.environ.get("SGLANG_FOLDER")
            if not root:
                raise ImportError("the folder of the unpacked SGLang is not named")
            torch = import_module("torch")
            torch.set_num_threads(1)
            install(Path(root))
            for info in Path(root).glob("sglang-*.dist-info"):
                PythonTree.version = info.stem.partition("-")[2]
            names = ("radix_cache", "base_prefix_cache", "cache_init_params", "unified_radix_cache")
            cls._modules.update({name: import_module(f"{_MEM_CACHE}.{name}") for name in names}, torch=torch)

    def __init__(self, page_size: int = 1) -> None:
        super().__init__(page_size)
        self.torch = self._modules["torch"]
        self.allocator = Allocator(self.torch.device("cpu"))
        self.cache = self._make()
        base = self._modules["base_prefix_cache"]
        self.Key = self._modules["radix_cache"].RadixKey
        self.MatchParams, self.InsertParams, self.EvictParams = (
            base.MatchPrefixParams,
            base.InsertParams,
            base.EvictParams,
        )

    def _parameters(self, **more: Any) -> Any:
        return self._modules["cache_init_params"].CacheInitParams(
            disable=False,
            req_to_token_pool=None,
            token_to_kv_pool_allocator=self.allocator,
            page_size=self.page_size,
            **more,
        )

    def _make(self) -> Any:
        return self._modules["radix_cache"].RadixCache(self._parameters())

    def names(self) -> dict[str, Any]:
        return {
            "array": array,
            "RadixKey": self.Key,
            "MatchPrefixParams": self.MatchParams,
            "InsertParams": self.InsertParams,
            "EvictParams": self.EvictParams,
            "match_prefix": self.cache.match_prefix,
            "path_slots": self.cache.path_device_indices,
            "insert": self.cache.insert,
            "lock": self.cache.lock,
            "unlock": self.cache.unlock,
            "evict": self.cache.evict,
        }

    def values(self, slots: Tokens) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(slots, np.int64))

    def match(self, key: Any) -> tuple[int, Node]:
        found = self.cache.match_prefix(self.MatchParams(key=self.Key(key)))
        return found.device_prefix_len, found.last_device_node

    def insert(self, key: Any, values: Any) -> int:
        return int(self.cache.insert(self.InsertParams(key=self.Key(key), value=values)).prefix_len)

    def slots(self, key: Any) -> list[int]:
        found: list[int] = self.cache.path_device_indices(self.match(key)[1]).tolist()
        return found

    def evict(self, tokens: int) -> int:
        return int(self.cache.evict(self.EvictParams(num_tokens=tokens)).num_tokens_evicted)

    def freed(self, tokens: int) -> Iterable[int]:
        self.forget_freed()
        self.once("evict", tokens=tokens)
        slots: list[int] = self.torch.cat(self.allocator.freed).tolist()
        return slots

    def protected(self) -> int:
        return int(self.cache.protected_size())

    def forget_freed(self) -> None:
        self.allocator.freed.clear()


class RustTree(PythonTree):
    """`UnifiedRadixCache` over the Rust tree that its wheel bundles: what SGLang uses unless told otherwise."""

    def _make(self) -> Any:
        unified = self._modules["unified_radix_cache"]
        components = import_module(f"{_MEM_CACHE}.unified_cache.component_type").ComponentType
        cache = unified.UnifiedRadixCache(
            self._parameters(tree_components=(components.FULL,), tree_core_backend="rust")
        )
        if type(cache.tree_core).__name__ != "RustUnifiedTreeCore":
            raise ImportError(f"SGLang chose {type(cache.tree_core).__name__}: its Rust tree does not load here")
        return cache


class RustBinding(RustTree):
    """The binding of that tree, without SGLang's Python around it."""

    calls: ClassVar[dict[str, str | tuple[str, str]]] = {
        "match": "match_prefix(MatchParams(key=key, extra_key=None, cache_salt=None))",
        "match of a list": "match_prefix(MatchParams(key=array('q', key), extra_key=None, cache_salt=None))",
        "match with its slots": (
            "path_slots(match_prefix(MatchParams(key=key, extra_key=None, cache_salt=None)).last_device_node_id, root)",
            "pass",
        ),
        "match below a node": "match_prefix(MatchParams(key=whole, extra_key=None, cache_salt=None))",
        "insert": "insert(InsertParams(key=key, value=values))",
        "lock": ("keep((node, lock(node, ())))", "keep(node)"),
        "unlock": "unlock(handle[0], Receipt(node_id=handle[0]), False)",
        "evict": "evict(tokens)",
    }

    def __init__(self, page_size: int = 1) -> None:
        super().__init__(page_size)
        self.binding = self.cache.tree_core._binding
        self.bindings = import_module(f"{_MEM_CACHE}.rust_tree_core.extension").bindings
        self.root = self.cache.root_node_handle()

    def names(self) -> dict[str, Any]:
        return {
            "array": array,
            "root": self.root,
            "MatchParams": self.bindings.MatchParamsBinding,
            "InsertParams": self.bindings.InsertParamsBinding,
            "Receipt": self.bindings.DecLockRefParamsBinding,
            "match_prefix": self.binding.match_prefix,
            "path_slots": self.binding.collect_full_device_indices,
            "insert": self.binding.insert,
            "lock": self.binding.inc_lock_ref,
            "unlock": self.binding.dec_lock_ref,
            "evict": self._evict,
        }

    def match(self, key: Any) -> tuple[int, Node]:
        found = self.binding.match_prefix(self.bindings.MatchParamsBinding(key=key))
        return found.device_prefix_len, found.last_device_node_id

    def insert(self, key: Any, values: Any) -> int:
        return int(self.binding.insert(self.bindings.InsertParamsBinding(key=key, value=values)).prefix_len)

    def _evict(self, tokens: int) -> int:
        """The walk that its cache drives step by step, with no more Python than it takes."""
        binding, component, done = self.binding, 0, 0
        binding.evict_device_start(component, tokens)
        try:
            while True:
                step = binding.evict_device_next_node(component, {component: done})
                if step.node_id is None:
                    if not step.made_progress:
                        return done
                    freed = step
                else:
                    freed = binding.evict_device_leaf(step.node_id)
                done += freed.tracker.get(component, 0)
                self.allocator.freed.extend(freed.new_device_frees.get(component, ()))
        finally:
            binding.evict_device_end(component)

    def evict(self, tokens: int) -> int:
        return self._evict(tokens)
