"""What a cache costs Python's garbage collector, which walks every container that it tracks."""

import gc
from time import process_time

from . import workload
from .commit import create
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
    """Processor time of the collections while 200,000 nodes are built; what lived before is frozen out of them."""

    unit = "seconds"

    def _pauses(self) -> list[float]:
        pauses: list[float] = []
        began = 0.0

        def note(phase: str, info: object) -> None:
            nonlocal began
            if phase == "start":
                began = process_time()
            else:
                pauses.append(process_time() - began)

        gc.collect()
        gc.freeze()
        gc.callbacks.append(note)
        try:
            self.build()
        finally:
            gc.callbacks.remove(note)
            gc.unfreeze()
        return pauses

    def track_all_pauses(self, implementation: str) -> float:
        return sum(self._pauses())

    def track_longest_pause(self, implementation: str) -> float:
        return max(self._pauses(), default=0.0)


class GcTrackedObjects(_BuildNodes):
    """Containers that the collector has to walk from then on, because of 200,000 nodes."""

    unit = "objects"

    def track_objects(self, implementation: str) -> int:
        gc.collect()
        before = len(gc.get_objects())
        self.build()
        gc.collect()
        return len(gc.get_objects()) - before
