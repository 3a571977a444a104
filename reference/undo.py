"""Undo: what lets an operation that is interrupted leave the cache as it was.

Python may raise between any two steps: KeyboardInterrupt, an exception of a signal handler, MemoryError. So whoever
changes a thing keeps its old state here first, and if the operation raises, the states are put back, newest first.
Each step sets absolute values, so that a roll back that is itself interrupted can simply begin again.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

_Key = TypeVar("_Key")

Step = tuple[Any, ...]
"""What to call, and with what."""


class Restorable(Protocol):
    def state(self) -> Any: ...

    def restore(self, state: Any) -> None: ...


class Undo(list[Step]):
    """The steps back to where the operation began. Empty between operations.

    A list, so that the two or three steps of a match cost an ``append`` each and no call of a Python function.
    """

    __slots__ = ()

    def keep(self, thing: Restorable) -> None:
        self.append((thing.restore, thing.state()))

    def keep_value(self, thing: object, name: str) -> None:
        """One attribute alone."""
        self.append((setattr, thing, name, getattr(thing, name)))

    def keep_entry(self, table: dict[_Key, Any], key: _Key) -> None:
        if key in table:
            self.append((table.__setitem__, key, table[key]))
        else:
            self.append((table.pop, key, None))

    def keep_length(self, queue: list[Any]) -> None:
        """That ``queue`` is only appended to from here on."""
        self.append((queue.__delitem__, slice(len(queue), None)))

    def roll_back(self) -> None:
        while self:
            step, *arguments = self[-1]
            step(*arguments)
            self.pop()
