"""Systems with a fault, for the tests of `triradix compare`: started by name, each in a process of its own."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, ClassVar

from triradix.compare.adapter import Node
from triradix.compare.trees import Reference


class Slow(Reference):
    """Every match takes a millisecond more."""

    calls: ClassVar[dict[str, str | tuple[str, str]]] = {**Reference.calls, "match": "match_prefix(key); sleep(0.001)"}

    def names(self) -> dict[str, Any]:
        return {**super().names(), "sleep": time.sleep}


class Wrong(Reference):
    """Finds one token less than there is."""

    def match(self, key: Any) -> tuple[int, Node]:
        length, node = super().match(key)
        return length - 1, node


class WrongSlots(Reference):
    """Right, but for what the timed call hands over."""

    calls: ClassVar[dict[str, str | tuple[str, str]]] = {
        **Reference.calls,
        "match with its slots": "match_prefix(key).indices[1:]",
        "match of many": "match_prefix_many(keys[:0], threads=1)",
        "match below a node": "match_prefix(new)",
        "evict": "evict(tokens).indices[1:]",
        "unlock": "handle",
    }


class Dies(Reference):
    def insert(self, key: Any, values: Any) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0


class Absent(Reference):
    @classmethod
    def prepare(cls) -> None:
        raise ImportError("it was never built")
