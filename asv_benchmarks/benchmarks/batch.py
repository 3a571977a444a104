"""Many keys in one crossing from Python."""

from functools import cache
from typing import Any

from triradix import PrefixCache, PrefixKey

from .commit import create, needs
from .timing import Heavy
from .workload import IMPLEMENTATIONS, keys_of_large, large, plant, prompts


class BatchMatch(Heavy):
    """Keys of 256 tokens, in batches of that size, from a tree of 16 million tokens. The time is that of one key."""

    params = (IMPLEMENTATIONS, (1, 256, 10_000), (1, 2))
    param_names = ("implementation", "keys in a batch", "threads")

    def setup(self, implementation: str, size: int, threads: int) -> None:
        needs("match_prefix_many", "threads")
        self.cache = large(implementation)
        keys = keys_of_large() if size > 1 else keys_of_large()[:2_000]
        self.batches = [keys[first : first + size] for first in range(0, len(keys), size)]
        self.threads = threads
        self.one_of(len(keys), threads)

    def time_one_key(self, *_: object) -> None:
        match_many, threads = self.cache.match_prefix_many, self.threads
        for batch in self.batches:
            match_many(batch, threads=threads)


class SingleCalls(Heavy):
    """The same 10,000 keys, one call each: what a batch is compared with."""

    params = (IMPLEMENTATIONS,)
    param_names = ("implementation",)

    def setup(self, implementation: str) -> None:
        self.cache = large(implementation)
        self.keys = keys_of_large()
        self.one_of(len(self.keys))

    def time_one_key(self, *_: object) -> None:
        match = self.cache.match_prefix
        for key in self.keys:
            match(key)


class WaitingQueue(Heavy):
    """10,000 waiting requests, each with its `PrefixKey`, matched again: 2,048 shared tokens and 256 of their own."""

    params = (IMPLEMENTATIONS, (1, 2))
    param_names = ("implementation", "threads")
    repeat = (2, 3, 0.6)

    def setup(self, implementation: str, threads: int) -> None:
        needs("match_prefix_many", "threads")
        self.cache, self.waiting = _queue(implementation)
        self.threads = threads
        self.one_of(1, threads)

    def time_10000_requests(self, *_: object) -> None:
        self.cache.match_prefix_many(self.waiting, threads=self.threads)


@cache
def _queue(implementation: str) -> tuple[PrefixCache, list[Any]]:
    tree, keys = create(implementation), prompts(2048, 256, 10_000)
    plant(tree, keys[:1000])
    waiting = [PrefixKey(key) for key in keys]
    tree.match_prefix_many(waiting)
    return tree, waiting
