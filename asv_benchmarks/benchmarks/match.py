"""Finding the longest cached prefix."""

from itertools import cycle

from .workload import IMPLEMENTATIONS, filled, prompts, tokens


class HotMatch:
    """One cached run, matched whole: the compare itself, without a branch on the way."""

    params = (IMPLEMENTATIONS, (128, 1024, 8192, 131_072))
    param_names = ("implementation", "tokens")

    def setup(self, implementation: str, length: int) -> None:
        self.key = tokens(0, length)
        self.cache = filled(implementation, [self.key])

    def time_one_match(self, implementation: str, length: int) -> None:
        self.cache.match_prefix(self.key)


class SharedPromptMatch:
    """1,000 prompts that share a system prompt and have 256 tokens of their own, matched in turn."""

    params = (IMPLEMENTATIONS, (512, 2048, 8192))
    param_names = ("implementation", "shared tokens")

    def setup(self, implementation: str, shared: int) -> None:
        keys = prompts(shared, 256, 1000)
        self.cache = filled(implementation, keys)
        self.keys = cycle(keys)

    def time_one_match(self, implementation: str, shared: int) -> None:
        self.cache.match_prefix(next(self.keys))
