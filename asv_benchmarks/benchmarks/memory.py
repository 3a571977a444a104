"""What the cached tokens take. Slots lie below 2^31, as they do in any engine of today."""

from collections.abc import Callable
from typing import Any

from . import workload
from .commit import create, needs_module
from .workload import IMPLEMENTATIONS, Rows, plant, rows, slots

CONTENTS: dict[str, Callable[[], Rows]] = {
    "256 runs of 8,192 tokens": lambda: rows(0, 256, 8_192),
    "200,000 leaves of 16 tokens": lambda: rows(0, workload.NODES, 16),
}


class PeakMemory:
    """The peak of a process that fills a cache, and, to be taken off it, of one that does all the same but insert."""

    version = "1"
    params = (IMPLEMENTATIONS, tuple(CONTENTS))
    param_names = ("implementation", "content")
    timeout = 300.0

    def setup(self, implementation: str, content: str) -> None:
        self.cache = create(implementation)
        self.keys = CONTENTS[content]()

    def peakmem_baseline(self, *_: object) -> None:
        self._pass_over(lambda key, values: None)

    def peakmem_filled(self, *_: object) -> None:
        self._pass_over(self.cache.insert)

    def _pass_over(self, insert: Callable[..., Any]) -> None:
        for number, key in enumerate(self.keys):
            insert(key, slots(number * len(key), len(key)))


class _Size:
    """``resident``: how much the process grew, by the system's count; ``counted``: the cache's own ``stats()``."""

    version = "1"
    params = (IMPLEMENTATIONS, ("resident", "counted"))
    param_names = ("implementation", "memory")
    unit = "bytes"
    timeout = 300.0

    def setup(self, implementation: str, memory: str) -> None:
        self.cache = create(implementation)
        if memory == "resident":
            needs_module("triradix.replay.recorder")

    def measure(self, memory: str, keys: Rows) -> int:
        if memory == "counted":
            plant(self.cache, keys)
            return self.cache.stats()["memory_bytes"]
        from triradix.replay.recorder import resident_bytes

        before, _ = resident_bytes()
        plant(self.cache, keys)
        after, _ = resident_bytes()
        return after - before


class BytesPerToken(_Size):
    """Of 256 runs of 8,192 tokens."""

    def track_bytes_per_token(self, implementation: str, memory: str) -> float:
        return self.measure(memory, rows(0, 256, 8_192)) / (256 * 8_192)


class BytesPerNode(_Size):
    """Of 200,000 leaves, each a node of its own with 16 tokens, which are part of the figure."""

    def track_bytes_per_node(self, implementation: str, memory: str) -> float:
        return self.measure(memory, rows(0, workload.NODES, 16)) / workload.NODES
