"""Finding the longest cached prefix."""

from functools import cache
from itertools import cycle, islice
from random import Random
from typing import Any

from triradix import PrefixCache

from . import workload
from .commit import create, needs
from .timing import Heavy, Timed
from .workload import (
    IMPLEMENTATIONS,
    Rows,
    as_array,
    filled,
    flush_caches,
    nested,
    prompts,
    rows,
    slots,
    tokens,
)


class _OneMatch(Timed):
    """``setup`` leaves a cache and the keys that are matched in turn; with ``cold``, in memory but for the keys."""

    cache: PrefixCache
    keys: list[Any]

    def match(self, cache: PrefixCache, keys: list[Any], calls: int, cold: bool = False) -> None:
        self.cache, self.keys = cache, list(islice(cycle(keys), calls))
        self.one_of(calls)
        if cold:
            flush_caches()
            for key in self.keys:
                key.count(-1)  # whoever asks has just made it

    def time_one_match(self, *_: object) -> None:
        match = self.cache.match_prefix
        for key in self.keys:
            match(key)


class HotMatch(_OneMatch):
    """One cached run, matched whole: the compare itself, without a branch on the way."""

    params = (IMPLEMENTATIONS, (1, 16, 64), (64, 128, 1024, 8192, 131_072))
    param_names = ("implementation", "page size", "tokens")

    def setup(self, implementation: str, page_size: int, length: int) -> None:
        key = tokens(0, length)
        self.match(filled(implementation, [key], page_size=page_size), [key], max(20, 200_000 // (length + 200)))


class ColdMatch(_OneMatch, Heavy):
    """500 of the runs of a cache with 16 million tokens, each found in memory, not in a processor's cache."""

    params = (IMPLEMENTATIONS, (1, 16), (256, 2048))
    param_names = ("implementation", "page size", "tokens")

    def setup(self, implementation: str, page_size: int, length: int) -> None:
        everything = _cold_rows(length)
        chosen = Random(0).sample(range(len(everything)), min(len(everything), 500))
        keys = [as_array(everything[number]) for number in chosen]
        self.match(_sixteen_million(implementation, page_size, length), keys, len(keys), cold=True)


def _cold_rows(length: int) -> Rows:
    return rows(0, workload.COLD_TOKENS // length, length)


@cache
def _sixteen_million(implementation: str, page_size: int, length: int) -> PrefixCache:
    return filled(implementation, _cold_rows(length), page_size=page_size)


class ResumedMatch(Timed):
    """256 new, cached tokens below a known node (``start=``): what a decoding request asks at each step."""

    params = (IMPLEMENTATIONS, (1, 16), (8192, 131_072))
    param_names = ("implementation", "page size", "context tokens")

    def setup(self, implementation: str, page_size: int, context: int) -> None:
        needs("match_prefix", "start")
        key = tokens(0, context + 256)
        self.cache = filled(implementation, [key], page_size=page_size)
        self.start = self.cache.match_prefix(key[:context]).node
        self.new = key[context:]
        self.one_of(500)

    def time_one_match(self, *_: object) -> None:
        match, start, new = self.cache.match_prefix, self.start, self.new
        for _call in range(500):
            match(new, start=start)


class Miss(_OneMatch):
    """Keys of which nothing is cached, asked of a cache with 1,000 sequences: still each is checked whole."""

    params = (IMPLEMENTATIONS, (1, 16), (128, 8192))
    param_names = ("implementation", "page size", "tokens")

    def setup(self, implementation: str, page_size: int, length: int) -> None:
        cached = filled(implementation, rows(0, 1000, 128), page_size=page_size)
        unknown = [as_array(row) for row in rows(1, 20, length)]
        for number, key in enumerate(unknown):
            key[0] = 1_000_000 + number  # the vocabulary ends below it
        self.match(cached, unknown, 500)


class SharedPromptMatch(_OneMatch):
    """1,000 prompts that share a system prompt and have 256 tokens of their own, matched in turn."""

    params = (IMPLEMENTATIONS, (1, 16), (512, 2048, 8192))
    param_names = ("implementation", "page size", "shared tokens")

    def setup(self, implementation: str, page_size: int, shared: int) -> None:
        keys = prompts(shared, 256, 1000)
        self.match(_with_prompts(implementation, page_size, shared), keys, 1000)


@cache
def _with_prompts(implementation: str, page_size: int, shared: int) -> PrefixCache:
    return filled(implementation, prompts(shared, 256, 1000), page_size=page_size)


class NestedMatch(_OneMatch):
    """64 prefixes of one sequence, 32 to 2,048 tokens, of which each was inserted by itself and has a branch there."""

    params = (IMPLEMENTATIONS, (1, 16))
    param_names = ("implementation", "page size")

    def setup(self, implementation: str, page_size: int) -> None:
        keys = nested(0, 32, 64)
        branches = [key + as_array(end) for key, end in zip(keys, rows(1, 64, 64), strict=True)]
        self.match(filled(implementation, keys + branches, page_size=page_size), keys[-1:], 200)


class FanOutMatch(_OneMatch):
    """1,000 of the children of one node, each with 64 tokens of its own below a prefix of 64, found in memory.

    Which of them a processor's cache still holds would else depend on what its neighbours do.
    """

    params = (IMPLEMENTATIONS, (1, 16), (1, 50_000))
    param_names = ("implementation", "page size", "children")

    def setup(self, implementation: str, page_size: int, children: int) -> None:
        cache, keys = _fan(implementation, page_size, children)
        self.match(cache, keys, 1000, cold=True)


@cache
def _fan(implementation: str, page_size: int, children: int) -> tuple[PrefixCache, list[Any]]:
    prefix, ends = tokens(0, 64), rows(1, children, 64)
    fan = create(implementation, page_size=page_size)
    values = slots(0, 128)
    for end in ends:
        fan.insert(prefix + as_array(end), values)
    chosen = Random(0).sample(range(children), min(children, 1000))
    return fan, [prefix + as_array(ends[number]) for number in chosen]
