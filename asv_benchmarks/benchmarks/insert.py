"""Caching what was computed."""

import triradix

from .workload import IMPLEMENTATIONS, filled, prompts, slots, tokens


class FreshInsert:
    """100 sequences that have nothing in common, into an empty cache."""

    params = (IMPLEMENTATIONS, (128, 1024, 8192))
    param_names = ("implementation", "tokens")
    # A second call on the same cache would find everything cached: each sample is one call after its own setup.
    number = 1
    warmup_time = 0.0

    def setup(self, implementation: str, length: int) -> None:
        self.work = [(tokens(number, length), slots(number * length, length)) for number in range(100)]
        self.cache = triradix.create(implementation)

    def time_100_inserts(self, implementation: str, length: int) -> None:
        for key, values in self.work:
            self.cache.insert(key, values)


class SharedPromptInsert:
    """200 prompts below a cached system prompt, each with 256 tokens of its own."""

    params = (IMPLEMENTATIONS, (512, 2048, 8192))
    param_names = ("implementation", "shared tokens")
    number = 1
    warmup_time = 0.0

    def setup(self, implementation: str, shared: int) -> None:
        keys = prompts(shared, 256, 200)
        self.work = [(key, slots(number * len(key), len(key))) for number, key in enumerate(keys)]
        self.cache = filled(implementation, [keys[0][:shared]])

    def time_200_inserts(self, implementation: str, shared: int) -> None:
        for key, values in self.work:
            self.cache.insert(key, values)
