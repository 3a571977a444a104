"""What the operations hand back: handles to pages, and light results that make their arrays on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from triradix import results
from triradix.arguments import DEFAULT_NAMESPACE, Namespace
from triradix.errors import StaleNodeError
from triradix.keys import Slots

if TYPE_CHECKING:
    from triradix.reference.births import Birth
    from triradix.reference.cache import RadixCache


def _read_only(array: Slots) -> Slots:
    """A view that nobody can make writable again, since what it looks at is not."""
    array.setflags(write=False)
    return array.view()


class _NoCopies:
    """A result belongs to its cache, which cannot be copied."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} objects can be neither copied nor pickled")


class Node(_NoCopies, results.Node):
    """A page by its birth and depth, a root by its epoch and namespace. Nothing in the tree knows of its handles."""

    __slots__ = ("_birth", "_cache", "_epoch", "_length", "_namespace")

    def __init__(
        self, cache: RadixCache, epoch: object, namespace: Namespace, birth: Birth | None, length: int
    ) -> None:
        self._cache = cache
        self._epoch = epoch
        self._namespace = namespace
        self._birth = birth
        """None: a root."""
        self._length = length

    @property
    def length(self) -> int:
        return self._length

    @property
    def is_root(self) -> bool:
        self._cache._refuse_stale(self)
        return self._birth is None

    @property
    def extra_key(self) -> Namespace | None:
        self._cache._refuse_stale(self)
        return None if self._namespace == DEFAULT_NAMESPACE else self._namespace

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        return (
            self._birth == other._birth
            and self._length == other._length
            and self._epoch is other._epoch
            and self._namespace == other._namespace
        )

    def __hash__(self) -> int:
        return hash((self._birth, self._length, self._namespace))

    def __repr__(self) -> str:
        namespace = "" if self._namespace == DEFAULT_NAMESPACE else f", extra_key={self._namespace!r}"
        stale = ""
        try:
            self._cache._refuse_stale(self)
        except StaleNodeError:
            stale = ", stale"
        return f"Node(length={self._length}{namespace}{stale})"


class MatchResult(_NoCopies, results.MatchResult):
    __slots__ = ("_indices", "_node", "_start")

    def __init__(self, node: Node, start: int) -> None:
        self._node = node
        self._start = start
        self._indices: Slots | None = None

    @property
    def length(self) -> int:
        return self._node._length

    @property
    def node(self) -> Node:
        return self._node

    @property
    def indices(self) -> Slots:
        if self._indices is None:
            indices = self._node._cache.path_indices(self._node, self._start)
            self._indices = _read_only(indices)
        return self._indices

    def __repr__(self) -> str:
        return f"MatchResult(length={self.length})"


class BatchMatchResult(_NoCopies, results.BatchMatchResult):
    __slots__ = ("_cache", "_indices", "_lengths", "_nodes", "_offsets")

    def __init__(self, cache: RadixCache, nodes: tuple[Node, ...]) -> None:
        self._cache = cache
        self._nodes = nodes
        self._lengths = _read_only(np.array([node._length for node in nodes], np.int64))
        self._offsets: Slots | None = None
        self._indices: Slots | None = None

    @property
    def lengths(self) -> Slots:
        return self._lengths

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self._nodes

    @property
    def offsets(self) -> Slots:
        if self._offsets is None:
            self._cache._refuse_stale(*self._nodes)
            offsets = np.zeros(len(self._nodes) + 1, np.int64)
            np.cumsum(self._lengths, out=offsets[1:])
            self._offsets = _read_only(offsets)
        return self._offsets

    @property
    def indices(self) -> Slots:
        if self._indices is None:
            indices = self._cache._flat_indices(self._nodes)
            self._indices = _read_only(indices)
        return self._indices

    def __repr__(self) -> str:
        return f"BatchMatchResult({len(self._nodes)} keys)"


class InsertResult(_NoCopies, results.InsertResult):
    __slots__ = ("_node", "_prefix_len")

    def __init__(self, prefix_len: int, node: Node) -> None:
        self._prefix_len = prefix_len
        self._node = node

    @property
    def prefix_len(self) -> int:
        return self._prefix_len

    @property
    def length(self) -> int:
        return self._node._length

    @property
    def node(self) -> Node:
        return self._node

    def __repr__(self) -> str:
        return f"InsertResult(prefix_len={self._prefix_len}, length={self.length})"


class EvictResult(_NoCopies, results.EvictResult):
    __slots__ = ("_indices",)

    def __init__(self, slots: list[Slots]) -> None:
        self._indices = np.concatenate(slots) if slots else np.empty(0, np.int64)

    @property
    def num_tokens(self) -> int:
        return len(self._indices)

    @property
    def indices(self) -> Slots:
        return self._indices

    def __repr__(self) -> str:
        return f"EvictResult(num_tokens={self.num_tokens})"
