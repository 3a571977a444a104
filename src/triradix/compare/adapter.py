"""What a row asks of a prefix cache, and how a call is timed.

Every system is timed by the same loop, compiled with its own call written out in it, as `timeit` does: no Python
function of ours stands between the clock and the system.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from time import perf_counter_ns
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from triradix.replay.recorder import preemptions

Tokens = npt.NDArray[np.int64]
Node = Any

_LEAST_PIECE_NS = 10_000
"""Of what is timed at once: much more than the clock takes, and a look at whether the core was lost in between."""


class CannotDo(Exception):
    """This system does not offer what the row measures; the message says what it lacks."""


class Adapter:
    """One cache of a system, behind the few calls that the rows make.

    ``calls`` are statements, by name, over the names of ``names()`` and the loop's own: those that are timed. A pair
    adds the statement that is no part of the call, such as keeping its result; its time is subtracted.
    """

    calls: ClassVar[dict[str, str | tuple[str, str]]]
    version: ClassVar[str] = ""

    @classmethod
    def prepare(cls) -> None:
        """Import what the system needs, and set ``version``. ImportError says what is missing."""

    def __init__(self, page_size: int = 1) -> None:
        self.page_size = page_size

    def names(self) -> dict[str, Any]:
        raise NotImplementedError

    def key(self, tokens: Tokens) -> Any:
        """The tokens as an engine holds them already."""
        key = array("q")
        key.frombytes(np.ascontiguousarray(tokens, np.int64).tobytes())
        return key

    def key_u32(self, tokens: Tokens) -> Any:
        """The same in 32 bits, where the system takes that; else its usual key."""
        return self.key(tokens)

    def prefix_key(self, tokens: Tokens) -> Any:
        """The key of a request that waits and is matched again; the usual key where there is no other."""
        return self.key(tokens)

    def values(self, slots: Tokens) -> Any:
        """Slots in the form that ``insert`` takes without a conversion."""
        raise NotImplementedError

    def match(self, key: Any) -> tuple[int, Node]:
        raise NotImplementedError

    def insert(self, key: Any, values: Any) -> int:
        """The tokens that were cached already."""
        raise NotImplementedError

    def slots(self, key: Any) -> list[int]:
        """The slots of the key's cached prefix."""
        raise NotImplementedError

    def evict(self, tokens: int) -> int:
        """How many went."""
        raise NotImplementedError

    def freed(self, tokens: int) -> Iterable[int]:
        """Evict by the timed statement: the slots that it hands over, in any order."""
        raise NotImplementedError

    def protected(self) -> int:
        """The tokens that locks protect."""
        raise NotImplementedError

    def forget_freed(self) -> None:
        """Let go of the slots that evictions handed over."""

    def loop(self, call: str, target: str = "key") -> Loop:
        """The timed loop of one of ``calls``; ``target`` names an item, or its parts."""
        return Loop(target, *self._statements(call), self.names())

    def once(self, call: str, **item: Any) -> Any:
        """What the timed statement gives for an item, by the names of its parts."""
        return eval(self._statements(call)[0], {**self.names(), **item})

    def _statements(self, call: str) -> tuple[str, str]:
        """What is timed, and what is subtracted."""
        found = self.calls.get(call)
        if found is None:
            raise CannotDo(f"has no {call}")
        return (found, "pass") if isinstance(found, str) else found


class Loop:
    """A loop over items with one statement in it. Calling it gives ns an item, without what the loop itself takes."""

    def __init__(self, target: str, statement: str, beside: str, names: dict[str, Any]) -> None:
        self.kept: list[Any] = []
        names = {**names, "keep": self.kept.append, "repeat": repeat}
        self._timed = _compiled(target, statement, names)
        self._beside = _compiled(target, beside, names)
        self._overhead: float | None = None
        self._piece_ns = 0
        self._last: float | None = None

    def __call__(self, items: Sequence[Any], times: int = 1) -> float:
        if self._overhead is None:
            self._piece_ns = min(_elapsed(self._beside, items[:0], 1) for _ in range(20))
            self._overhead = self._measure_overhead(items)
        self.kept.clear()
        self._last = undisturbed(self._pieces(items, times))
        return max(0.0, self._last - self._overhead)

    def _pieces(self, items: Sequence[Any], times: int) -> Iterator[Piece]:
        """The whole loop in up to eight parts: of the passes, or, if there is one alone, of the items.

        None is shorter than `_LEAST_PIECE_NS`, as far as the last time tells. What a part takes with nothing in it, as
        the clock itself, is none of the calls'.
        """
        expected = None if self._last is None else self._last * len(items) * times
        most = 8 if expected is None else max(1, min(8, int(expected / _LEAST_PIECE_NS)))

        def measure(some: Sequence[Any], times: int) -> int:
            return max(0, _elapsed(self._timed, some, times) - self._piece_ns)

        if times > 1:
            for part in shares(times, most):
                yield partial(measure, items, part), part * len(items)
            return
        begin = 0
        for part in shares(len(items), most):
            yield partial(measure, items[begin : begin + part], 1), part
            begin += part

    def times_for(self, items: Sequence[Any], round_ns: int) -> int:
        """How often to go through the items for a round of about that long. Goes through them at least once."""

        def passes(times: int) -> int:
            self.kept.clear()
            return _elapsed(self._timed, items, times)

        times = times_for(passes, round_ns)
        self.kept.clear()
        return times

    def _measure_overhead(self, items: Sequence[Any]) -> float:
        """ns an item of the loop without the call: the least of five, so that nothing else is subtracted."""
        times = max(1, 20_000 // len(items))
        found = []
        for _ in range(5):
            self.kept.clear()
            found.append(_elapsed(self._beside, items, times))
        return min(found) / (len(items) * times)


Piece = tuple[Callable[[], int], int]
"""Something that takes its own time, in ns, and how many units of work it is."""


def undisturbed(pieces: Iterable[Piece]) -> float:
    """ns a unit, over all pieces during which the system did not give this process's core to another.

    On a shared machine a pause of milliseconds would else be most of what a round of microseconds shows. If there is no
    such piece, over all of them.
    """
    quiet, disturbed = [0, 0], [0, 0]
    for measure, units in pieces:
        before = preemptions()
        elapsed = measure()
        total = quiet if preemptions() == before else disturbed
        total[0] += elapsed
        total[1] += units
    elapsed, units = quiet if quiet[1] else disturbed
    return elapsed / units


def times_for(elapsed: Callable[[int], int], round_ns: int) -> int:
    """How many times make a round of about that long; ``elapsed``: the ns of so many."""
    times = 1
    while True:
        taken = elapsed(times)
        if taken >= round_ns / 4:
            taken = min(taken, elapsed(times))  # again: the core may have been lost in between
        if taken >= round_ns / 4:
            return max(1, round(times * round_ns / taken))
        times *= 2


def shares(count: int, most: int = 8) -> list[int]:
    """``count`` in up to so many parts of about equal size."""
    parts = min(most, count)
    return [count * (part + 1) // parts - count * part // parts for part in range(parts)]


def _compiled(target: str, statement: str, names: dict[str, Any]) -> Any:
    # `names` as parameters: a local is found faster than a global, for every system alike.
    source = f"def run(items, times, {', '.join(f'{name}={name}' for name in names)}):\n"
    source += f"    for _ in repeat(None, times):\n        for {target} in items:\n            {statement}\n"
    scope = dict(names)
    exec(source, scope)
    return scope["run"]


def _elapsed(run: Any, items: Sequence[Any], times: int) -> int:
    began = perf_counter_ns()
    run(items, times)
    return perf_counter_ns() - began
