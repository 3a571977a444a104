"""Undo: what lets an operation that is interrupted leave the cache as it was.

Python may raise between any two steps: KeyboardInterrupt, an exception of a signal handler, MemoryError. So whoever
changes a thing keeps its old state here first, and if the operation raises, the states are put back, newest first.
Each step sets absolute values, so that a roll back that is itself interrupted can simply begin again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

_Key = TypeVar("_Key")


class Restorable(Protocol):
    def state(self) -> Any: ...

    def restore(self, state: Any) -> None: ...


class Undo:
    """The steps back to where the operation began. Empty between operations."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def __bool__(self) -> bool:
        return bool(self._steps)

    def last_of_all(self, step: Callable[[], Any]) -> None:
        """Take ``step`` once everything that is kept from now on is back in place."""
        self._steps.append((step, ()))

    def keep(self, thing: Restorable) -> None:
        self._steps.append((thing.restore, (thing.state(),)))

    def keep_entry(self, table: dict[_Key, Any], key: _Key) -> None:
        if key in table:
            self._steps.append((table.__setitem__, (key, table[key])))
        else:
            self._steps.append((table.pop, (key, None)))

    def keep_length(self, queue: list[Any]) -> None:
        """That ``queue`` is only appended to from here on."""
        self._steps.append((queue.__delitem__, (slice(len(queue), None),)))

    def forget(self) -> None:
        self._steps.clear()

    def roll_back(self) -> None:
        while self._steps:
            step, arguments = self._steps[-1]
            step(*arguments)
            self._steps.pop()
