"""Block hashes, and the events that carry them."""

from triradix import Node

from .commit import create, needs
from .timing import Timed
from .workload import IMPLEMENTATIONS, as_array, filled, rows, slots

_LENGTH = 1024


class InsertWithEvents(Timed):
    """50 fresh sequences of 1,024 tokens, and the hand-over of the events: the price of switching them on."""

    params = (IMPLEMENTATIONS, (1, 16, 64), (False, True))
    param_names = ("implementation", "page size", "events")

    def setup(self, implementation: str, page_size: int, events: bool) -> None:
        self.cache = create(implementation, page_size=page_size, enable_kv_cache_events=events)
        self.keys = [as_array(row) for row in rows(0, 50, _LENGTH)]
        self.slots = slots(0, _LENGTH)
        self.one_of(len(self.keys))

    def time_one_insert(self, *_: object) -> None:
        insert, values = self.cache.insert, self.slots
        for key in self.keys:
            insert(key, values)
        self.cache.take_events()


class BlockHashes(Timed):
    """The digests of a path of 1,024 tokens: asked for the first time, or known already."""

    params = (IMPLEMENTATIONS, (16, 64), ("first", "again"))
    param_names = ("implementation", "page size", "asked")

    def setup(self, implementation: str, page_size: int, asked: str) -> None:
        needs("block_hashes")
        keys = [as_array(row) for row in rows(0, 50, _LENGTH)]
        self.cache = filled(implementation, keys, page_size=page_size)
        self.nodes: list[Node] = [self.cache.match_prefix(key).node for key in keys]
        if asked == "again":
            self.time_one_path()
        self.one_of(len(self.nodes))

    def time_one_path(self, *_: object) -> None:
        hashes = self.cache.block_hashes
        for node in self.nodes:
            hashes(node)
