"""Caching what was computed."""

from typing import Any

from triradix import PrefixCache

from .commit import create, needs
from .timing import Timed
from .workload import IMPLEMENTATIONS, as_array, filled, prompts, rows, slots, tokens


class _OneInsert(Timed):
    """``setup`` leaves a cache and the (key, values) that are inserted, once each."""

    cache: PrefixCache
    work: list[tuple[Any, Any]]

    def insert(self, cache: PrefixCache, keys: list[Any]) -> None:
        self.cache = cache
        self.work = [(key, slots(number * len(key), len(key))) for number, key in enumerate(keys)]
        self.one_of(len(keys))

    def time_one_insert(self, *_: object) -> None:
        insert = self.cache.insert
        for key, values in self.work:
            insert(key, values)


class FreshInsert(_OneInsert):
    """100 sequences that have nothing in common, into an empty cache."""

    params = (IMPLEMENTATIONS, (1, 16, 64), (128, 1024, 8192))
    param_names = ("implementation", "page size", "tokens")

    def setup(self, implementation: str, page_size: int, length: int) -> None:
        self.insert(create(implementation, page_size=page_size), [as_array(row) for row in rows(0, 100, length)])


class DuplicateInsert(_OneInsert):
    """100 sequences that are cached already."""

    params = (IMPLEMENTATIONS, (1, 16), (128, 1024, 8192))
    param_names = ("implementation", "page size", "tokens")

    def setup(self, implementation: str, page_size: int, length: int) -> None:
        keys = [as_array(row) for row in rows(0, 100, length)]
        self.insert(filled(implementation, keys, page_size=page_size), keys)


class SharedPromptInsert(_OneInsert):
    """200 prompts below a cached system prompt, each with 256 tokens of its own."""

    params = (IMPLEMENTATIONS, (1, 16), (512, 2048, 8192))
    param_names = ("implementation", "page size", "shared tokens")

    def setup(self, implementation: str, page_size: int, shared: int) -> None:
        keys = prompts(shared, 256, 200)
        self.insert(filled(implementation, [keys[0][:shared]], page_size=page_size), keys)


class ResumedInsert(Timed):
    """100 different suffixes of 256 tokens below one known node (``start=``)."""

    params = (IMPLEMENTATIONS, (1, 16), (8192, 131_072))
    param_names = ("implementation", "page size", "context tokens")

    def setup(self, implementation: str, page_size: int, context: int) -> None:
        needs("insert", "start")
        key = tokens(0, context)
        self.cache = filled(implementation, [key], page_size=page_size)
        self.start = self.cache.match_prefix(key).node
        self.work = [(as_array(row), slots(number * 256, 256)) for number, row in enumerate(rows(1, 100, 256))]
        self.one_of(100)

    def time_one_insert(self, *_: object) -> None:
        insert, start = self.cache.insert, self.start
        for key, values in self.work:
            insert(key, values, start=start)
