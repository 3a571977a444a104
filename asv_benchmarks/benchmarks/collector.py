"""What a cache costs Python's garbage collector, which walks every container that it tracks."""

import gc

from . import workload
from .commit import create, needs_module
from .workload import IMPLEMENTATIONS, rows, slots


class _BuildNodes:
    """200,000 nodes of 16 tokens are inserted."""

    version = "1"
    params = (IMPLEMENTATIONS,)
    param_names = ("implementation",)
    timeout = 300.0

    def setup(self, implementation: str) -> None:
        self.cache = create(implementation)
        self.keys = rows(0, workload.NODES, 16)
        self.slots = slots(0, 16)

    def build(self) -> None:
        for key in self.keys:
            self.cache.insert(key, self.slots)


class GcPauses(_BuildNodes):
    """While 200,000 nodes are built; what lived before is frozen out of the collections."""

    unit = "seconds"

    def _pauses(self) -> "list[int]":
        needs_module("triradix.replay.recorder")
        from triradix.replay.recorder import CollectorPauses

        with CollectorPauses() as collector:
            self.build()
        return list(collector.pauses_ns)

    def track_all_pauses(self, implementation: str) -> float:
        return sum(self._pauses()) / 1e9

    def track_longest_pause(self, implementation: str) -> float:
        return max(self._pauses(), default=0) / 1e9


class GcTrackedObjects(_BuildNodes):
    """Containers that the collector has to walk from then on, because of 200,000 nodes."""

    unit = "objects"

    def track_objects(self, implementation: str) -> int:
        gc.collect()
        before = len(gc.get_objects())
        self.build()
        gc.collect()
        return len(gc.get_objects()) - before
