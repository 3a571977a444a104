"""The model of the protocol as plain as it gets: a trie with one Python object a page, every field written eagerly.

Nothing here is meant to be fast. A call walks all pages of its path, an eviction scans all pages of the cache. What it
answers is what every implementation must answer. It has all methods of the protocol, so it can itself be run through
the suite: ``pytest tests --implementation oracle:RadixCache`` (leave out the tests of depth and of memory).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import numpy as np
from oracle_pages import (
    Page,
    PageBatchMatchResult,
    PageEvictResult,
    PageInsertResult,
    PageMatchResult,
    PageNode,
    Unique,
    event_hash,
    slots_of,
)

from triradix.arguments import Namespace, as_count, as_int64, as_namespace, as_threads
from triradix.config import check_config
from triradix.errors import IntegrityError
from triradix.events import AllBlocksCleared, BlockRemoved, BlockStored, KVCacheEvent
from triradix.keys import as_slots, as_tokens
from triradix.results import Node

COUNTERS = ("lookups", "lookup_tokens", "hit_tokens", "inserts", "inserted_tokens", "evicted_tokens")


class RadixCache(Unique):
    """The oracle. Arguments and answers are those of `triradix.PrefixCache`."""

    def __init__(
        self,
        *,
        page_size: Any = 1,
        eviction_policy: Any = "lru",
        bigram: Any = False,
        slru_threshold: Any = 2,
        enable_kv_cache_events: Any = False,
    ) -> None:
        self._config = check_config(page_size, eviction_policy, bigram, slru_threshold, enable_kv_cache_events)
        self._clock = 0
        self._events: list[KVCacheEvent] = []
        self._roots: dict[Namespace, Page] = {}
        self._counts = dict.fromkeys(COUNTERS, 0)

    page_size = property(lambda self: self._config.page_size)
    eviction_policy = property(lambda self: self._config.eviction_policy)
    bigram = property(lambda self: self._config.bigram)
    slru_threshold = property(lambda self: self._config.slru_threshold)
    enable_kv_cache_events = property(lambda self: self._config.enable_kv_cache_events)

    # Find

    def match_prefix(self, key: Any, extra_key: Any = None, *, start: Any = None) -> PageMatchResult:
        tokens, namespace = as_tokens(key).tolist(), as_namespace(extra_key)
        above = self._beginning(tokens, namespace, extra_key is None, start)
        return self._match(tokens, above)

    def match_prefix_many(self, keys: Any, extra_keys: Any = None, *, threads: Any = None) -> PageBatchMatchResult:
        batch = _batch(keys, extra_keys, threads)
        return PageBatchMatchResult([self._match(tokens, self._root(namespace)).node for tokens, namespace in batch])

    def peek_prefix(self, key: Any, extra_key: Any = None, *, start: Any = None) -> int:
        tokens, namespace = as_tokens(key).tolist(), as_namespace(extra_key)
        above = self._beginning(tokens, namespace, extra_key is None, start)
        return self._descend(self._pages(tokens), above).depth

    def peek_prefix_many(self, keys: Any, extra_keys: Any = None, *, threads: Any = None) -> Any:
        batch = _batch(keys, extra_keys, threads)
        depths = [self._descend(self._pages(tokens), self._root(namespace)).depth for tokens, namespace in batch]
        return np.array(depths, np.int64)

    def _match(self, tokens: list[int], above: Page) -> PageMatchResult:
        pages = self._pages(tokens)
        deepest = self._descend(pages, above)
        self._clock += 1
        for page in deepest.path():
            page.last_access = self._clock
        self._counts["lookups"] += 1
        self._counts["lookup_tokens"] += sum(map(len, pages))
        self._counts["hit_tokens"] += deepest.depth - above.depth
        return PageMatchResult(PageNode(self, deepest), above.depth)

    # Keep

    def insert(
        self,
        key: Any,
        values: Any,
        extra_key: Any = None,
        *,
        priority: Any = 0,
        start: Any = None,
        inserted_len: Any = 0,
    ) -> PageInsertResult:
        tokens, namespace = as_tokens(key).tolist(), as_namespace(extra_key)
        count = _stored_length(values)
        if count != len(tokens):
            raise ValueError(f"{count} values for {len(tokens)} tokens")
        slots = as_slots(values).tolist()
        priority, inserted_len = as_int64(priority, "priority"), as_count(inserted_len, "inserted_len")
        above = self._beginning(tokens, namespace, extra_key is None, start)

        self._clock += 1
        pages = self._pages(tokens)
        existing = self._descend(pages, above)
        for page in existing.path():
            page.last_access = self._clock
            page.priority = max(page.priority, priority)
            if page.depth > inserted_len:
                page.hit_count += 1
        last, made = existing, []
        for units in pages[(existing.depth - above.depth) // self.page_size :]:
            at = last.depth - above.depth
            page = Page(last.namespace, last, units, slots[at : at + self.page_size])
            page.creation = page.last_access = self._clock
            page.priority, page.hit_count = priority, 1
            last.children[units] = page
            made.append(page)
            last = page
        self._counts["inserts"] += 1
        self._counts["inserted_tokens"] += last.depth - existing.depth
        if made and self.enable_kv_cache_events:
            self._events.append(
                BlockStored(
                    [event_hash(page) for page in made],
                    None if existing.parent is None else event_hash(existing),
                    [unit for page in made for unit in page.units],
                    self.page_size,
                    extra_key=None if last.namespace == (None, None) else last.namespace,
                )
            )
        return PageInsertResult(existing.depth, PageNode(self, last))

    def inc_lock_ref(self, node: Any) -> int:
        before = self.protected_size()
        page = self._page_of(node)
        if page.parent is not None:
            page.own_locks += 1
        for above in page.path():
            above.lock_ref += 1
        return self.protected_size() - before

    def dec_lock_ref(self, node: Any) -> int:
        before = self.protected_size()
        page = self._page_of(node)
        if page.parent is None:
            return 0
        if page.own_locks == 0:
            raise ValueError("no lock of this page is outstanding")
        page.own_locks -= 1
        for above in page.path():
            above.lock_ref -= 1
        return before - self.protected_size()

    # Free

    def evict(self, num_tokens: Any) -> PageEvictResult:
        return self._evict(as_count(num_tokens, "num_tokens"), list(self._roots))

    def evict_namespace(self, extra_key: Any, num_tokens: Any = None) -> PageEvictResult:
        namespace = as_namespace(extra_key)
        wanted = self.total_size() if num_tokens is None else as_count(num_tokens, "num_tokens")
        return self._evict(wanted, [namespace])

    def _evict(self, wanted: int, namespaces: list[Namespace]) -> PageEvictResult:
        freed: list[int] = []
        gone: list[Page] = []
        while len(freed) < wanted:
            free = [p for p in self._all_pages() if not p.children and p.lock_ref == 0 and p.namespace in namespaces]
            if not free:
                break
            page = min(free, key=self._rank)
            assert page.parent is not None
            del page.parent.children[page.units]
            page.alive = False
            freed += page.slots
            gone.append(page)
        self._counts["evicted_tokens"] += len(freed)
        if gone and self.enable_kv_cache_events:
            self._events.append(BlockRemoved([event_hash(page) for page in gone]))
        return PageEvictResult(freed)

    def _rank(self, page: Page) -> Any:
        return {
            "lru": page.last_access,
            "lfu": (page.hit_count, page.last_access),
            "fifo": page.creation,
            "mru": -page.last_access,
            "filo": -page.creation,
            "priority": (page.priority, page.last_access),
            "slru": (page.hit_count >= self.slru_threshold, page.last_access),
        }[self.eviction_policy]

    def reset(self) -> None:
        for page in [*self._all_pages(), *self._roots.values()]:
            page.alive = False
        self._roots = {}
        self._counts = dict.fromkeys(COUNTERS, 0)
        if self.enable_kv_cache_events:
            self._events.append(AllBlocksCleared())

    # Look

    def path_indices(self, node: Any, start: Any = 0) -> Any:
        first = as_count(start, "start")
        return np.array(slots_of(self._page_of(node))[first:], np.int64)

    def all_indices(self) -> Any:
        return np.array([slot for page in self._all_pages() for slot in page.slots], np.int64)

    def total_size(self) -> int:
        return sum(len(page.units) for page in self._all_pages())

    def evictable_size(self) -> int:
        return sum(len(page.units) for page in self._all_pages() if page.lock_ref == 0)

    def protected_size(self) -> int:
        return sum(len(page.units) for page in self._all_pages() if page.lock_ref > 0)

    def stats(self) -> dict[str, int]:
        pages = sum(1 for _ in self._all_pages())
        return {**self._counts, "total_tokens": self.total_size(), "nodes": pages, "memory_bytes": 1000 * pages}

    def block_hashes(self, node: Any) -> list[bytes]:
        return [page.digest for page in self._page_of(node).path()]

    def take_events(self) -> list[KVCacheEvent]:
        events, self._events = self._events, []
        return events

    def check(self) -> None:
        for page in self._all_pages():
            assert page.parent is not None
            if page.lock_ref != page.own_locks + sum(child.lock_ref for child in page.children.values()):
                raise IntegrityError("the locks of a page are its own and those of its children")
            for child in page.children.values():
                if child.last_access > page.last_access:
                    raise IntegrityError("a page was accessed after its parent")
                if child.priority > page.priority:
                    raise IntegrityError("a page has a higher priority than its parent")
                if child.creation < page.creation:
                    raise IntegrityError("a page is older than its parent")

    def pretty_print(self, file: TextIO | None = None) -> None:
        print(f"namespaces: {list(self._roots)}; the first pages:", file=file)
        for page in itertools.islice(self._all_pages(), 20):
            print(page.namespace, page.depth, page.units[:8], f"last {page.last_access}", file=file)

    def __repr__(self) -> str:
        return f"<oracle: {self.total_size()} units>"

    # The model

    def _root(self, namespace: Namespace) -> Page:
        return self._roots.setdefault(namespace, Page(namespace, None, (), []))

    def _all_pages(self) -> Iterator[Page]:
        waiting = list(self._roots.values())
        while waiting:
            page = waiting.pop()
            waiting += page.children.values()
            if page.parent is not None:
                yield page

    def _pages(self, tokens: list[int]) -> list[tuple[Any, ...]]:
        """The units of a key, cut to whole pages."""
        units: list[Any] = list(itertools.pairwise(tokens)) if self.bigram else tokens
        return [tuple(units[i * self.page_size :][: self.page_size]) for i in range(len(units) // self.page_size)]

    def _descend(self, pages: list[tuple[Any, ...]], page: Page) -> Page:
        for units in pages:
            if units not in page.children:
                break
            page = page.children[units]
        return page

    def _beginning(self, tokens: list[int], namespace: Namespace, left_out: bool, start: Any) -> Page:
        """The page below which the key goes on: that of ``start``, or the root of the namespace."""
        if start is None:
            return self._root(namespace)
        page = self._own(start)
        if not left_out and page.namespace != namespace:
            raise ValueError("start is of another namespace")
        start.fresh()
        if self.bigram and page.parent is not None and tokens[:1] != [page.units[-1][1]]:
            raise ValueError("a key below a node must begin with the node's last token")
        return page

    def _page_of(self, node: Any) -> Page:
        self._own(node)
        page: Page = node.fresh()
        return page

    def _own(self, node: Any) -> Page:
        if not isinstance(node, Node):
            raise TypeError(f"expected a node, not {type(node).__name__}")
        if not isinstance(node, PageNode) or node.cache is not self:
            raise ValueError("the node is of another cache")
        return node.page


def _stored_length(values: Any) -> int:
    """`len`, whatever a subclass of list or tuple says of itself."""
    if isinstance(values, list):
        return list.__len__(values)
    return tuple.__len__(values) if isinstance(values, tuple) else len(values)


def _batch(keys: Any, extra_keys: Any, threads: Any) -> list[tuple[list[int], Namespace]]:
    _check_sequence(keys, "keys")
    tokens = [_named(f"keys[{i}]", as_tokens, key).tolist() for i, key in enumerate(keys)]
    namespaces: list[Namespace] = [(None, None)] * len(tokens)
    if extra_keys is not None:
        _check_sequence(extra_keys, "extra_keys")
        if len(extra_keys) != len(tokens):
            raise ValueError(f"{len(extra_keys)} extra_keys for {len(tokens)} keys")
        namespaces = [_named(f"extra_keys[{i}]", as_namespace, extra_key) for i, extra_key in enumerate(extra_keys)]
    as_threads(threads)
    return list(zip(tokens, namespaces, strict=True))


def _check_sequence(sequence: Any, name: str) -> None:
    try:
        memoryview(sequence)
    except TypeError:
        if isinstance(sequence, Sequence) and not isinstance(sequence, str):
            return
    raise TypeError(f"{name} must be a sequence, not {type(sequence).__name__}")


def _named(name: str, convert: Any, value: Any) -> Any:
    try:
        return convert(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
