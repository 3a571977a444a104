"""Making room."""

from functools import cache
from itertools import count

from triradix import PrefixCache

from .commit import create
from .timing import Heavy
from .workload import IMPLEMENTATIONS, POLICIES, as_array, groups, rows, slots

_PREFIX, _END = 64, 16


class EvictByPolicy(Heavy):
    """512 tokens and the array of their slots, from leaves of 16 tokens, 99 to a prefix of 64.

    A quarter of the leaves were inserted twice, and their priorities are 0 to 4. After each sample the evicted leaves
    are made up for by new ones, and the tree is used again.

    A million leaves take plain Python 20 s to make and 1 GB, for each policy and process.
    """

    params = (IMPLEMENTATIONS, POLICIES, (1_000, 10_000, 100_000, 1_000_000))
    param_names = ("implementation", "policy", "leaves")

    def setup(self, implementation: str, policy: str, leaves: int) -> None:
        self.cache, full, seeds = _leaves(implementation, policy, leaves)
        while (missing := full - self.cache.total_size()) > 0:
            _plant(self.cache, next(seeds), -(-missing // _END))
        self.calls = 8 if leaves <= 1_000 else 64
        self.one_of(self.calls)

    def time_evict_512_tokens(self, *_: object) -> None:
        evict = self.cache.evict
        for _call in range(self.calls):
            evict(512).indices  # noqa: B018


@cache
def _leaves(implementation: str, policy: str, leaves: int) -> "tuple[PrefixCache, int, count[int]]":
    tree = create(implementation, eviction_policy=policy)
    _plant(tree, 0, leaves)
    return tree, tree.total_size(), count(1_000_000, 1_000)


def _plant(tree: PrefixCache, seed: int, leaves: int) -> None:
    values = slots(0, _PREFIX + _END)
    for keys in groups(seed, leaves, _PREFIX, _END):
        for number, key in enumerate(keys):
            tree.insert(key, values, priority=number % 5)
            if number % 4 == 0:
                tree.insert(key, values, priority=number % 5)


class FullCache(Heavy):
    """The steady state of a full cache, lru: each step inserts 512 fresh tokens and evicts as many.

    The leaves have 128 tokens, 99 to a prefix of 512.
    """

    params = (IMPLEMENTATIONS, (1_000, 10_000, 100_000))
    param_names = ("implementation", "leaves")

    def setup(self, implementation: str, leaves: int) -> None:
        self.cache, self.seeds = _groups_of_128(implementation, leaves)
        self.fresh = [as_array(row) for row in rows(next(self.seeds), 50, 512)]
        self.slots = slots(0, 512)
        self.one_of(50)

    def time_one_step(self, *_: object) -> None:
        insert, evict, values = self.cache.insert, self.cache.evict, self.slots
        for key in self.fresh:
            insert(key, values)
            evict(512).indices  # noqa: B018


@cache
def _groups_of_128(implementation: str, leaves: int) -> "tuple[PrefixCache, count[int]]":
    tree, values = create(implementation), slots(0, 512 + 128)
    for keys in groups(0, leaves, 512, 128):
        for key in keys:
            tree.insert(key, values)
    return tree, count(1_000_000)
