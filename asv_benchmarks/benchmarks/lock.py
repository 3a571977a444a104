"""Protecting what a request uses."""

from functools import cache

from triradix import Node, PrefixCache

from .timing import Timed
from .workload import IMPLEMENTATIONS, as_array, filled, nested, rows


@cache
def _paths(implementation: str, depth: int) -> tuple[PrefixCache, list[Node]]:
    keys = []
    for path in range(50):
        on_path = nested(path, 32, depth)
        keys += [key + as_array(end) for key, end in zip(on_path, rows(1000 + path, depth, 16), strict=True)]
    tree = filled(implementation, keys)
    return tree, [tree.match_prefix(keys[depth * (path + 1) - 1]).node for path in range(50)]


class _Paths(Timed):
    """50 separate paths, each through ``depth`` branches, which stand 32 tokens apart."""

    params = (IMPLEMENTATIONS, (1, 64, 512))
    param_names = ("implementation", "depth")

    def setup(self, implementation: str, depth: int) -> None:
        self.cache, self.nodes = _paths(implementation, depth)
        self.one_of(len(self.nodes))
        if self.cache.protected_size():
            self.unlock()

    def lock(self) -> None:
        inc = self.cache.inc_lock_ref
        for node in self.nodes:
            inc(node)

    def unlock(self) -> None:
        dec = self.cache.dec_lock_ref
        for node in self.nodes:
            dec(node)


class Lock(_Paths):
    """Of a whole path on which nothing was locked."""

    def time_one_inc_lock_ref(self, *_: object) -> None:
        self.lock()


class Unlock(_Paths):
    """Of a whole path on which nothing else is locked."""

    def setup(self, implementation: str, depth: int) -> None:
        super().setup(implementation, depth)
        self.lock()

    def time_one_dec_lock_ref(self, *_: object) -> None:
        self.unlock()
