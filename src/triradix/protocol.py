"""The contract of a prefix cache, as a type. All three implementations keep it to the letter.

The model: for each namespace a trie whose nodes are *pages* of ``page_size`` *units*; a unit is a token, or with
``bigram`` a pair of neighbouring tokens. Every operation cuts its key to whole pages. The clock ticks once for each
``match_prefix`` and ``insert``, each element of a batch by itself; there is no wall time in any result. A radix tree is
only how an implementation compresses that trie: no result depends on it.

Costs below: n is the number of tokens given, h the number of branches (compressed runs) on the path, L the number of
evictable leaves. Whatever raises leaves the cache as it was (an interrupt may also come when the call is done).
Arguments are checked in the order key, extra_key, len(values), values, numbers; then the node: of another cache
(ValueError), of another namespace (ValueError), stale (StaleNodeError), not joined (bigram; ValueError).

Sources: the operations and their names are those of SGLang's radix cache (``sglang.srt.mem_cache``, 0.5.x); the block
digests are its storage hashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TextIO

import numpy as np
import numpy.typing as npt

from triradix.arguments import Namespace
from triradix.events import KVCacheEvent
from triradix.keys import Key
from triradix.results import BatchMatchResult, EvictResult, InsertResult, MatchResult, Node

ExtraKey = str | Namespace | None
"""A namespace as the caller gives it: None, a str ``s`` for (s, None), or the pair (extra_key, cache_salt)."""


class PrefixCache(Protocol):
    """A prefix cache: the longest cached prefix of a key, and the KV slots that hold it.

    Find: `match_prefix`, `match_prefix_many`, `peek_prefix`, `peek_prefix_many`.
    Keep: `insert`, `inc_lock_ref`, `dec_lock_ref`.
    Free: `evict`, `evict_namespace`, `reset`.
    Look: `path_indices`, `all_indices`, `total_size`, `evictable_size`, `protected_size`, `stats`, `block_hashes`,
    `take_events`, `pretty_print`, `check`.

    Any method may be called from any thread at any time. Copying and pickling raise TypeError.
    """

    @property
    def page_size(self) -> int:
        """Units a page, as given."""

    @property
    def eviction_policy(self) -> str:
        """The policy, as given."""

    @property
    def bigram(self) -> bool:
        """Whether units are pairs of tokens, as given."""

    @property
    def slru_threshold(self) -> int:
        """Hits from which a page is protected under ``slru``, as given."""

    @property
    def enable_kv_cache_events(self) -> bool:
        """Whether events are kept, as given."""

    def match_prefix(self, key: Key, extra_key: ExtraKey = None, *, start: Node | None = None) -> MatchResult:
        """Find the longest cached prefix of ``key``, and refresh ``last_access`` of every page on its path.

        With ``start`` the key is only what follows that node, and the cost depends on the new part alone; the pages
        above are on the path all the same. ``extra_key`` may then be left out. With ``bigram`` the key then begins with
        the node's last token. Ticks the clock. O(n + h).
        """

    def match_prefix_many(
        self, keys: Sequence[Key], extra_keys: Sequence[ExtraKey] | None = None, *, threads: int | None = None
    ) -> BatchMatchResult:
        """As ``match_prefix`` of each key in order, in one crossing.

        ``extra_keys``: None, or one for each key (else ValueError). ``threads``: how many cores may share the work
        (None: as many as help). A bad key raises, the message says which, and nothing of the batch has been done.
        """

    def peek_prefix(self, key: Key, extra_key: ExtraKey = None, *, start: Node | None = None) -> int:
        """The length that ``match_prefix`` would find, in units from the root; changes nothing at all. O(n + h)."""

    def peek_prefix_many(
        self, keys: Sequence[Key], extra_keys: Sequence[ExtraKey] | None = None, *, threads: int | None = None
    ) -> npt.NDArray[np.int64]:
        """``peek_prefix`` of each key: lengths, shape ``(len(keys),)``. Arguments as in ``match_prefix_many``."""

    def insert(
        self,
        key: Key,
        values: Key,
        extra_key: ExtraKey = None,
        *,
        priority: int = 0,
        start: Node | None = None,
        inserted_len: int = 0,
    ) -> InsertResult:
        """Cache the whole pages of ``key``; unit i takes the slot ``values[i]`` unless it is cached already.

        ``values``: one int64 for each token (else ValueError), copied in, opaque. Pages that existed: ``last_access`` =
        now, ``priority`` = max(old, new), ``hit_count`` + 1 where the page ends after ``inserted_len`` (units from the
        root that an earlier chunk of the same request inserted). New pages: ``hit_count`` 1, ``creation`` =
        ``last_access`` = now, ``priority`` (int64) as given. ``start`` as in ``match_prefix``. Ticks the clock.
        O(n + h).
        """

    def inc_lock_ref(self, node: Node) -> int:
        """Add a lock to every page from ``node`` to the root: locked pages are never evicted.

        Returns the units that became protected (0 for a root, which takes no lock). O(runs that become locked).
        """

    def dec_lock_ref(self, node: Node) -> int:
        """Take back one ``inc_lock_ref`` of the same page, through any equal node.

        Returns the units that became evictable. ValueError, and nothing changed, if no lock of that page is left.
        """

    def evict(self, num_tokens: int) -> EvictResult:
        """Free pages until at least ``num_tokens`` units are free, or no page can go.

        While fewer are freed: of the pages that have no child and no lock, the one of smallest rank goes. Ranks:
        lru last_access; lfu (hit_count, last_access); fifo creation; mru −last_access; filo −creation; priority
        (priority, last_access); slru (hit_count ≥ slru_threshold, last_access). ValueError if negative; any size else.
        O(freed + runs touched · log L).
        """

    def evict_namespace(self, extra_key: ExtraKey, num_tokens: int | None = None) -> EvictResult:
        """``evict`` among the pages of one namespace; None: as many as can go."""

    def path_indices(self, node: Node, start: int = 0) -> npt.NDArray[np.int64]:
        """The slots of the node's path from unit ``start`` on, shape ``(max(0, node.length - start),)``.

        Beyond the end: empty. Negative: ValueError. O(result + h).
        """

    def all_indices(self) -> npt.NDArray[np.int64]:
        """Every cached slot once, shape ``(total_size(),)``, in no particular order. O(result)."""

    def total_size(self) -> int:
        """Cached units: evictable + protected. O(1)."""

    def evictable_size(self) -> int:
        """Units without a lock: what ``evict`` can free. O(1)."""

    def protected_size(self) -> int:
        """Units of locked pages. O(1)."""

    def reset(self) -> None:
        """Drop everything: all nodes become stale, roots and holders of locks included.

        Queued events stay, and statistics start anew.
        """

    def stats(self) -> Mapping[str, int]:
        """Counts since the start or the last ``reset``. O(1).

        ``lookups`` (matches, not peeks), ``lookup_tokens`` (whole-page units of the keys given), ``hit_tokens`` (those
        of them that matched), ``inserts``, ``inserted_tokens`` (new units), ``evicted_tokens``; now: ``total_tokens``,
        ``nodes`` (the implementation's own), ``memory_bytes`` (all that the cache holds, as allocated).
        """

    def block_hashes(self, node: Node) -> list[bytes]:
        """The 32-byte digest of each page of the node's path.

        SHA-256(previous digest ‖ units as little-endian uint32, two words for a bigram). Before the first page stands
        the namespace's seed. Amortised O(pages not yet hashed) beside the result.
        """

    def take_events(self) -> list[KVCacheEvent]:
        """Hand over and clear the queue of events, oldest first; always empty if they are off."""

    def check(self) -> None:
        """Walk every invariant of the implementation; `IntegrityError` names the one that broke. O(cached)."""

    def pretty_print(self, file: TextIO | None = None) -> None:
        """Write the tree for people to ``file`` (stdout): long runs shortened, no recursion limit."""
