"""Pages, nodes and results of the oracle: see `oracle`."""

from __future__ import annotations

import hashlib
from typing import Any, NoReturn

import numpy as np

from triradix.arguments import Namespace
from triradix.errors import StaleNodeError
from triradix.results import BatchMatchResult, EvictResult, InsertResult, MatchResult, Node


class Page:
    """One page of the model, or the root of a namespace (no parent, no units)."""

    def __init__(self, namespace: Namespace, parent: Page | None, units: tuple[Any, ...], slots: list[int]) -> None:
        self.namespace = namespace
        self.parent = parent
        self.units = units
        self.slots = slots
        self.children: dict[tuple[Any, ...], Page] = {}
        self.depth: int = 0 if parent is None else parent.depth + len(units)
        self.creation = 0
        self.last_access = 0
        self.hit_count = 0
        self.priority = 0
        self.lock_ref = 0  # locks of this page and of all pages below it
        self.own_locks = 0  # locks taken on this very page
        self.alive = True
        self.digest: bytes = _seed(namespace) if parent is None else _digest(parent.digest, units)

    def path(self) -> list[Page]:
        """The pages from the first below the root to this one."""
        pages: list[Page] = []
        page = self
        while page.parent is not None:
            pages.append(page)
            page = page.parent
        return pages[::-1]


def _seed(namespace: Namespace) -> bytes:
    if namespace == (None, None):
        return b""
    message = b"sglang-cache-namespace-v1"
    for part in namespace:
        if part is None:
            message += b"\x00"
        else:
            text = part.encode("utf-8")
            message += b"\x01" + len(text).to_bytes(8, "little") + text
    return hashlib.sha256(message).digest()


def _digest(previous: bytes, units: tuple[Any, ...]) -> bytes:
    words = [word for unit in units for word in (unit if isinstance(unit, tuple) else (unit,))]
    return hashlib.sha256(previous + b"".join(word.to_bytes(4, "little") for word in words)).digest()


def event_hash(page: Page) -> int:
    return int.from_bytes(page.digest[:8], "big", signed=True)


class Unique:
    """Neither copied nor pickled."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} objects can be neither copied nor pickled")

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(0)

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce_ex__(0)


class PageNode(Unique, Node):
    def __init__(self, cache: Any, page: Page) -> None:
        self.cache = cache
        self.page = page

    def fresh(self) -> Page:
        if not self.page.alive:
            raise StaleNodeError("the page of this node was evicted, or the cache was reset")
        return self.page

    @property
    def length(self) -> int:
        return self.page.depth

    @property
    def is_root(self) -> bool:
        return self.fresh().parent is None

    @property
    def extra_key(self) -> Namespace | None:
        namespace = self.fresh().namespace
        return None if namespace == (None, None) else namespace

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PageNode) and other.page is self.page

    def __hash__(self) -> int:
        return id(self.page)

    def __repr__(self) -> str:
        return f"<node of the oracle: {self.page.namespace}, length {self.length}, alive {self.page.alive}>"


class PageMatchResult(Unique, MatchResult):
    def __init__(self, node: PageNode, above: int) -> None:
        self._node = node
        self._above = above
        self._indices: Any = None

    length = property(lambda self: self._node.length)
    node = property(lambda self: self._node)

    @property
    def indices(self) -> Any:
        if self._indices is None:
            self._indices = _read_only(slots_of(self._node.fresh())[self._above :])
        return self._indices


class PageBatchMatchResult(Unique, BatchMatchResult):
    def __init__(self, nodes: list[PageNode]) -> None:
        self._nodes = tuple(nodes)
        self._lengths = _read_only([node.length for node in nodes])
        self._indices: Any = None
        self._offsets: Any = None

    lengths = property(lambda self: self._lengths)
    nodes = property(lambda self: self._nodes)

    @property
    def indices(self) -> Any:
        if self._indices is None:
            self._indices = _read_only([slot for node in self._nodes for slot in slots_of(node.fresh())])
        return self._indices

    @property
    def offsets(self) -> Any:
        if self._offsets is None:
            for node in self._nodes:
                node.fresh()
            self._offsets = _read_only([sum(self._lengths[:i].tolist()) for i in range(len(self._nodes) + 1)])
        return self._offsets


class PageInsertResult(Unique, InsertResult):
    def __init__(self, prefix_len: int, node: PageNode) -> None:
        self._prefix_len = prefix_len
        self._node = node

    prefix_len = property(lambda self: self._prefix_len)
    length = property(lambda self: self._node.length)
    node = property(lambda self: self._node)


class PageEvictResult(Unique, EvictResult):
    def __init__(self, slots: list[int]) -> None:
        self._indices = np.array(slots, np.int64)

    num_tokens = property(lambda self: len(self._indices))
    indices = property(lambda self: self._indices)


def slots_of(page: Page) -> list[int]:
    return [slot for above in page.path() for slot in above.slots]


def _read_only(numbers: list[int]) -> Any:
    array = np.array(numbers, np.int64)
    array.flags.writeable = False
    return array
