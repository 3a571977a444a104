"""`RadixCache`: the public class. It checks arguments, calls the tree, and makes results."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TextIO, TypeVar

import numpy as np
import numpy.typing as npt

from triradix import results as protocol_results
from triradix.arguments import Namespace, as_count, as_int64, as_namespace, as_threads
from triradix.config import check_config
from triradix.errors import IntegrityError, StaleNodeError
from triradix.events import AllBlocksCleared, KVCacheEvent
from triradix.keys import Key, PrefixKey, Slots, as_slots, as_tokens, stored_items
from triradix.protocol import ExtraKey
from triradix.reference import births, check, eviction, hashing, locks, printing
from triradix.reference.events import removed
from triradix.reference.exclusive import run_alone
from triradix.reference.insert import insert
from triradix.reference.log import RESET, hand_over, note, tell_broken
from triradix.reference.node import Run
from triradix.reference.results import BatchMatchResult, EvictResult, InsertResult, MatchResult, Node
from triradix.reference.span import Units
from triradix.reference.tree import Tree
from triradix.reference.undo import Undo
from triradix.reference.walk import match, path_slots, walk

_R = TypeVar("_R")


class RadixCache:
    """A prefix cache in plain Python; `triradix.PrefixCache` is its contract.

    n: tokens given; h: runs (branches) on the path; L: evictable leaves.

    Find: `match_prefix` O(n + h), `match_prefix_many` the same for each key, `peek_prefix`, `peek_prefix_many`.
    Keep: `insert` O(n + h), `inc_lock_ref` and `dec_lock_ref` O(runs whose pages become locked or free).
    Free: `evict`, `evict_namespace` O(freed + runs touched · log L) amortised, `reset` O(runs).
    Look: `path_indices` O(result + h), `all_indices` O(cached), `total_size`, `evictable_size`, `protected_size`,
    `stats` O(1), `block_hashes` O(result + pages not hashed yet), `take_events`, `pretty_print`, `check` O(cached).

    Any method may be called from any thread; a call waits for the one that runs.
    """

    __slots__ = ("__weakref__", "_config", "_tree", "_undo")

    def __init__(
        self,
        *,
        page_size: int = 1,
        eviction_policy: str = "lru",
        bigram: bool = False,
        slru_threshold: int = 2,
        enable_kv_cache_events: bool = False,
    ) -> None:
        if hasattr(self, "_tree"):
            raise TypeError("this RadixCache exists already; make another one")
        self._config = check_config(page_size, eviction_policy, bigram, slru_threshold, enable_kv_cache_events)
        self._undo = Undo()
        self._tree = Tree(self._config, self._undo, [])

    @property
    def page_size(self) -> int:
        return self._config.page_size

    @property
    def eviction_policy(self) -> str:
        return self._config.eviction_policy

    @property
    def bigram(self) -> bool:
        return self._config.bigram

    @property
    def slru_threshold(self) -> int:
        return self._config.slru_threshold

    @property
    def enable_kv_cache_events(self) -> bool:
        return self._config.enable_kv_cache_events

    # Find

    def match_prefix(
        self, key: Key, extra_key: ExtraKey = None, *, start: protocol_results.Node | None = None
    ) -> MatchResult:
        """The longest cached prefix of ``key``; refreshes every page on its path. O(n + h)."""
        words = _words(key)
        namespace = as_namespace(extra_key)
        node = None if start is None else self._own_start(start, extra_key, namespace)
        return run_alone(self._undo, self._match, words, namespace, node)

    def match_prefix_many(
        self, keys: Sequence[Key], extra_keys: Sequence[ExtraKey] | None = None, *, threads: int | None = None
    ) -> BatchMatchResult:
        """`match_prefix` of each key in order. Plain Python has no use for more than one of the ``threads``."""
        batch = _batch(keys, extra_keys, threads)
        return BatchMatchResult(self, run_alone(self._undo, self._match_each, batch))

    def peek_prefix(self, key: Key, extra_key: ExtraKey = None, *, start: protocol_results.Node | None = None) -> int:
        """The length that `match_prefix` would find; changes nothing. O(n + h)."""
        words = _words(key)
        namespace = as_namespace(extra_key)
        node = None if start is None else self._own_start(start, extra_key, namespace)
        return run_alone(self._undo, self._peek, words, namespace, node)

    def peek_prefix_many(
        self, keys: Sequence[Key], extra_keys: Sequence[ExtraKey] | None = None, *, threads: int | None = None
    ) -> npt.NDArray[np.int64]:
        """`peek_prefix` of each key: their lengths."""
        batch = _batch(keys, extra_keys, threads)
        lengths = run_alone(self._undo, lambda: [self._peek(words, namespace, None) for words, namespace in batch])
        return np.array(lengths, np.int64)

    # Keep

    def insert(
        self,
        key: Key,
        values: Key,
        extra_key: ExtraKey = None,
        *,
        priority: int = 0,
        start: protocol_results.Node | None = None,
        inserted_len: int = 0,
    ) -> InsertResult:
        """Cache the whole pages of ``key`` with the slots ``values``. O(n + h)."""
        words = _words(key)
        namespace = as_namespace(extra_key)
        slots = _slots(values, len(words) // 4)
        rank = as_int64(priority, "priority")
        inserted = as_count(inserted_len, "inserted_len")
        node = None if start is None else self._own_start(start, extra_key, namespace)
        result = run_alone(self._undo, self._insert, words, slots, namespace, node, rank, inserted)
        hand_over()
        return result

    def inc_lock_ref(self, node: protocol_results.Node) -> int:
        """Lock every page from ``node`` to the root; returns the units that became protected."""
        return run_alone(self._undo, self._lock, self._own(node))

    def dec_lock_ref(self, node: protocol_results.Node) -> int:
        """Take back one `inc_lock_ref` of the same page; returns the units that became evictable."""
        return run_alone(self._undo, self._unlock, self._own(node))

    # Free

    def evict(self, num_tokens: int) -> EvictResult:
        """Free pages by rank until ``num_tokens`` units are free, or no page can go."""
        result = run_alone(self._undo, self._evict, as_count(num_tokens, "num_tokens"), None)
        hand_over()
        return result

    def evict_namespace(self, extra_key: ExtraKey, num_tokens: int | None = None) -> EvictResult:
        """`evict` among the pages of one namespace; None: all that can go."""
        namespace = as_namespace(extra_key)
        wanted = None if num_tokens is None else as_count(num_tokens, "num_tokens")
        result = run_alone(self._undo, self._evict, wanted, namespace)
        hand_over()
        return result

    def reset(self) -> None:
        """Drop everything; all nodes become stale. O(runs)."""
        run_alone(self._undo, self._reset)
        hand_over()

    # Look

    def path_indices(self, node: protocol_results.Node, start: int = 0) -> npt.NDArray[np.int64]:
        """The slots of the node's path from unit ``start`` on. O(result + h)."""
        first = as_count(start, "start")
        return run_alone(self._undo, self._path_indices, self._own(node), first)

    def all_indices(self) -> npt.NDArray[np.int64]:
        """Every cached slot once, in no particular order. O(cached)."""
        return run_alone(self._undo, self._all_indices)

    def total_size(self) -> int:
        """Cached units. O(1)."""
        return run_alone(self._undo, lambda: self._tree.counts.total)

    def evictable_size(self) -> int:
        """Units without a lock. O(1)."""
        return run_alone(self._undo, lambda: self._tree.counts.total - self._tree.counts.protected)

    def protected_size(self) -> int:
        """Units of locked pages. O(1)."""
        return run_alone(self._undo, lambda: self._tree.counts.protected)

    def stats(self) -> dict[str, int]:
        """Counts since the start or the last `reset`. O(1)."""
        return run_alone(self._undo, lambda: self._tree.stats())

    def block_hashes(self, node: protocol_results.Node) -> list[bytes]:
        """The 32-byte digest of each page of the node's path. O(result + pages not hashed yet)."""
        return run_alone(self._undo, self._block_hashes, self._own(node))

    def take_events(self) -> list[KVCacheEvent]:
        """Hand over and clear the queue of events, oldest first. O(events)."""
        return run_alone(self._undo, self._take_events)

    def check(self) -> None:
        """Walk every invariant; IntegrityError names the one that broke. O(cached)."""
        try:
            run_alone(self._undo, lambda: check.check(self._tree))
        except IntegrityError:
            tell_broken()
            raise

    def pretty_print(self, file: TextIO | None = None) -> None:
        """Write the tree for people to ``file`` (stdout)."""
        print(run_alone(self._undo, lambda: printing.drawn(self._tree)), file=file)

    def __repr__(self) -> str:
        config = ", ".join(f"{name}={value!r}" for name, value in self._config._asdict().items())
        return f"<RadixCache {config}: {self._tree.counts.total} units>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("RadixCache objects can be neither copied nor pickled")

    def _miscount(self) -> None:
        """For tests of what a failed check does: every check until the next reset fails."""
        self._tree.counts.total += 1

    # What runs alone

    def _match(self, words: bytes, namespace: Namespace, start: Node | None) -> MatchResult:
        return MatchResult(self._found(words, namespace, start), 0 if start is None else start._length)

    def _found(self, words: bytes, namespace: Namespace, start: Node | None) -> Node:
        tree = self._tree
        run, key, goal, namespace = self._place(words, namespace, start)
        depth, birth = match(tree, run, key.base, key, goal)
        return Node(self, tree.epoch, namespace, birth, depth)

    def _match_each(self, batch: Iterable[tuple[bytes, Namespace]]) -> tuple[Node, ...]:
        nodes = []
        for words, namespace in batch:
            nodes.append(self._found(words, namespace, None))
            self._undo.clear()  # one that is interrupted keeps what is done
        return tuple(nodes)

    def _peek(self, words: bytes, namespace: Namespace, start: Node | None) -> int:
        run, key, goal, _ = self._place(words, namespace, start)
        return walk(self._tree, run, key.base, key, goal)[1]

    def _insert(
        self, words: bytes, slots: Slots, namespace: Namespace, start: Node | None, priority: int, inserted: int
    ) -> InsertResult:
        tree = self._tree
        run, key, goal, namespace = self._place(words, namespace, start)
        prefix_len, birth = insert(tree, run, key.base, key, goal, slots, priority, inserted)
        return InsertResult(prefix_len, Node(self, tree.epoch, namespace, birth, goal))

    def _lock(self, node: Node) -> int:
        run = self._find(node)
        if node._birth is None:
            return 0
        return locks.lock(self._tree, run, node._length)

    def _unlock(self, node: Node) -> int:
        run = self._find(node)
        if node._birth is None:
            return 0
        return locks.unlock(self._tree, run, node._length)

    def _evict(self, wanted: int | None, namespace: Namespace | None) -> EvictResult:
        tree = self._tree
        space = None if namespace is None else tree.spaces.get(namespace)
        if namespace is not None and space is None:
            return EvictResult([])
        slots, digests = eviction.evict(tree, wanted, space)
        if digests:
            self._undo.keep_length(tree.events)
            tree.events.append(removed(digests))
        return EvictResult(slots)

    def _reset(self) -> None:
        old = self._tree
        new = Tree(self._config, self._undo, old.events)
        if self._config.enable_kv_cache_events:
            self._undo.keep_length(old.events)
            old.events.append(AllBlocksCleared())
        self._undo.keep_value(self, "_tree")
        self._tree = new
        note(self._undo, RESET, old.counts.total)
        self._undo.clear()
        try:
            old.take_apart()
        except MemoryError:
            pass  # it is done; what cannot be taken apart now is left to the collector

    def _path_indices(self, node: Node, start: int) -> Slots:
        return path_slots(self._tree, self._find(node), start, node._length)

    def _flat_indices(self, nodes: tuple[Node, ...]) -> Slots:
        """The slots of all paths one after the other."""

        def flat() -> Slots:
            paths = [self._path_indices(node, 0) for node in nodes]
            return np.concatenate(paths) if paths else np.empty(0, np.int64)

        return run_alone(self._undo, flat)

    def _all_indices(self) -> Slots:
        windows = [run.span.slots_between(run.start, run.end) for run in self._tree.runs()]
        return np.concatenate(windows) if windows else np.empty(0, np.int64)

    def _block_hashes(self, node: Node) -> list[bytes]:
        run = self._find(node)
        return hashing.path_digests(self._tree, run, node._length)

    def _take_events(self) -> list[KVCacheEvent]:
        taken = self._tree.events
        self._tree.events = []
        return taken

    # Nodes

    def _own(self, node: object, name: str = "node") -> Node:
        if isinstance(node, Node) and node._cache is self:
            return node
        if not isinstance(node, protocol_results.Node):
            raise TypeError(f"{name} must be a Node, not {type(node).__name__}")
        raise ValueError(f"{name} belongs to another cache")

    def _own_start(self, start: object, extra_key: ExtraKey, namespace: Namespace) -> Node:
        node = self._own(start, "start")
        if extra_key is not None and namespace != node._namespace:
            raise ValueError("extra_key is not the namespace of start")
        return node

    def _find(self, node: Node) -> Run:
        """The run that holds the page of ``node``; StaleNodeError if it is gone."""
        tree = self._tree
        if node._epoch is tree.epoch:
            if node._birth is None:
                return tree.root_of(node._namespace)
            run = births.find(tree.anchors, node._birth, node._length)
            if run is not None:
                return run
        raise StaleNodeError("this node is stale: its page was evicted, or the cache was reset")

    def _refuse_stale(self, *nodes: Node) -> None:
        def find_all() -> None:
            for node in nodes:
                self._find(node)

        run_alone(self._undo, find_all)

    def _place(self, words: bytes, namespace: Namespace, start: Node | None) -> tuple[Run, Units, int, Namespace]:
        """Where a call begins, what it looks for, to which depth, and in which namespace."""
        tree = self._tree
        if start is None:
            run, base = tree.root_of(namespace), 0
        else:
            run, base, namespace = self._find(start), start._length, start._namespace
            if tree.overlap and not run.is_root and words[:4] != (last := run.span.last_token(base)):
                token = int.from_bytes(last, "little")
                raise ValueError(f"with bigram, a key below a node must begin with the node's last token, {token}")
        units = max(len(words) // 4 - tree.overlap, 0)
        return run, Units(base, words, tree.overlap), base + units - units % tree.page_size, namespace


def _words(key: object) -> bytes:
    """The tokens of a key as bytes; a `PrefixKey` keeps them."""
    if isinstance(key, PrefixKey):
        known = key.memo.get("reference")
        if known is None:
            known = key.memo["reference"] = _little_endian(key.tokens)
        assert isinstance(known, bytes)
        return known
    return _little_endian(as_tokens(key))


def _little_endian(tokens: npt.NDArray[np.uint32]) -> bytes:
    return (tokens if sys.byteorder == "little" else tokens.byteswap()).tobytes()


def _slots(values: object, tokens: int) -> Slots:
    """The slots, one for each of ``tokens``."""
    stored = list if isinstance(values, list) else tuple if isinstance(values, tuple) else None
    try:
        given = stored.__len__(values) if stored else len(values)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"values must be a list, a tuple, an integer buffer or a PrefixKey, not {type(values).__name__}"
        ) from None
    slots = as_slots(values) if given == tokens else None
    if slots is None or len(slots) != tokens:  # the second: another thread changed the values
        given = given if slots is None else len(slots)
        raise ValueError(f"values has {given} elements, for a key of {tokens} tokens; there must be one for each token")
    return slots


def _batch(keys: object, extra_keys: object, threads: object) -> Iterable[tuple[bytes, Namespace]]:
    """The checked arguments of a batch. (No list of pairs, which the collector would walk.)"""
    words = _each(_words, _sequence(keys, "keys"), "keys")
    namespaces = [as_namespace(None)] * len(words)
    if extra_keys is not None:
        given = _sequence(extra_keys, "extra_keys")
        if len(given) != len(words):
            raise ValueError(f"extra_keys has {len(given)} elements, keys has {len(words)}; they must be as many")
        namespaces = _each(as_namespace, given, "extra_keys")
    as_threads(threads)
    return zip(words, namespaces, strict=True)


def _sequence(items: object, name: str) -> list[Any]:
    if isinstance(items, (list, tuple)):
        return list(stored_items(items))
    if not isinstance(items, Sequence) or isinstance(items, (str, bytes, bytearray, memoryview, array)):
        raise TypeError(f"{name} must be a sequence, not {type(items).__name__}")
    return list(items)


def _each(convert: Callable[[Any], _R], items: list[Any], name: str) -> list[_R]:
    """All items converted; an error names the first that cannot be."""
    converted: list[_R] = []
    try:
        for item in items:
            converted.append(convert(item))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}[{len(converted)}]: {error}") from None
    return converted
