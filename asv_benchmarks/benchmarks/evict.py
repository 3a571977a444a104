"""Making room."""

from itertools import count

from .workload import IMPLEMENTATIONS, filled, groups, slots, tokens


class Evict:
    """64 evictions of 512 tokens, under lru, from groups of a 512-token prefix with 99 ends of 128 tokens."""

    params = (IMPLEMENTATIONS, (1_000, 10_000))
    param_names = ("implementation", "leaves")
    number = 1
    warmup_time = 0.0

    def setup(self, implementation: str, leaves: int) -> None:
        self.cache = filled(implementation, groups(leaves))

    def time_64_evictions(self, implementation: str, leaves: int) -> None:
        for _ in range(64):
            self.cache.evict(512).indices  # noqa: B018


class FullCache:
    """The steady state of a full cache: each step inserts 512 fresh tokens and evicts as many."""

    params = (IMPLEMENTATIONS, (1_000, 10_000))
    param_names = ("implementation", "leaves")

    def setup(self, implementation: str, leaves: int) -> None:
        self.cache = filled(implementation, groups(leaves))
        self.slots = slots(0, 512)
        self.fresh = tokens(0, 512)
        self.step = count(1)

    def time_one_step(self, implementation: str, leaves: int) -> None:
        # The first token alone makes the sequence a new one; the vocabulary ends below it.
        self.fresh[0] = 1_000_000 + next(self.step)
        self.cache.insert(self.fresh, self.slots)
        self.cache.evict(512)
