"""What the operations return. Each implementation has its own light classes; these are their common types.

They are abstract base classes, so that ``isinstance(x, triradix.Node)`` holds for every implementation's nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from triradix.arguments import Namespace


class Node(ABC):
    """A handle to one cached page, or to the root of a namespace.

    Two nodes are equal, and hash equally, if and only if they mean the same page or root: for ever, also across later
    splits and merges of the tree. A node keeps its cache alive, but not its page: once that is evicted, or the cache is
    reset, every use raises `StaleNodeError`, even when the same tokens are cached again. ``length``, equality and hash
    still work then.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def length(self) -> int:
        """Units from the root to the end of this page; 0 for a root."""

    @property
    @abstractmethod
    def is_root(self) -> bool:
        """Whether this is the root of a namespace. StaleNodeError once stale."""

    @property
    @abstractmethod
    def extra_key(self) -> Namespace | None:
        """The namespace: None for the default one, else the pair (extra_key, cache_salt). StaleNodeError once stale."""


class MatchResult(ABC):
    """What ``match_prefix`` found."""

    __slots__ = ()

    @property
    @abstractmethod
    def length(self) -> int:
        """Units matched, from the root."""

    @property
    @abstractmethod
    def node(self) -> Node:
        """The deepest matched page, or the root."""

    @property
    @abstractmethod
    def indices(self) -> npt.NDArray[np.int64]:
        """The slots of this key's matched units, shape ``(length - start.length,)``, read-only.

        Made on first use, in O(length), and valid for ever after. StaleNodeError if ``node`` is stale by then.
        """


class BatchMatchResult(ABC):
    """What ``match_prefix_many`` found, for n keys."""

    __slots__ = ()

    @property
    @abstractmethod
    def lengths(self) -> npt.NDArray[np.int64]:
        """Units matched, shape ``(n,)``, read-only."""

    @property
    @abstractmethod
    def nodes(self) -> Sequence[Node]:
        """The deepest matched page of each key, n of them."""

    @property
    @abstractmethod
    def indices(self) -> npt.NDArray[np.int64]:
        """The slots of all keys one after the other, shape ``(offsets[n],)``, read-only.

        Made on first use. StaleNodeError if any of ``nodes`` is stale by then.
        """

    @property
    @abstractmethod
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each key's slots begin in ``indices``, and the end of the last: shape ``(n + 1,)``, read-only.

        Made on first use. StaleNodeError if any of ``nodes`` is stale by then.
        """


class InsertResult(ABC):
    """What ``insert`` did.

    With ``s`` the length of ``start`` (0 without): of the caller's ``values``, ``[: prefix_len - s]`` are duplicates
    for the caller to free, ``[prefix_len - s : length - s]`` belong to the cache now, ``[length - s :]`` stay the
    caller's.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def prefix_len(self) -> int:
        """Units that were cached already, from the root."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Units that are cached now: the key cut to whole pages, from the root."""

    @property
    @abstractmethod
    def node(self) -> Node:
        """The last page of the key, or the root."""


class EvictResult(ABC):
    """What ``evict`` freed."""

    __slots__ = ()

    @property
    @abstractmethod
    def num_tokens(self) -> int:
        """Units freed."""

    @property
    @abstractmethod
    def indices(self) -> npt.NDArray[np.int64]:
        """Their slots, shape ``(num_tokens,)``: page by page in the order of eviction, in token order within a page."""
