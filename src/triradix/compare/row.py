"""What is measured, and what is expected of it: rows with their bars, and the sizes that a run takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np

from triradix.compare.adapter import Adapter, Tokens

VOCABULARY = 128_000

# First slot and count to slots.
Slots = Callable[[int, int], Tokens]


@dataclass(frozen=True)
class Scale:
    """How large and how long. ``round_ns``: what the timed part of a round takes, where a row can choose.

    ``fresh_rounds``: how many rounds there are where each is a process of its own. ``passes``: how often a round goes
    over a batch, at least; a pass that other programs disturb does not count.
    """

    name: str
    rounds: int
    fresh_rounds: int
    passes: int
    round_ns: int
    conversations: int
    prompts: int
    children: int
    leaves: int
    growth: tuple[int, int]
    long_runs: int
    small_leaves: int
    nodes: int
    waiting: int
    batch: int
    capacity: int
    read_runs: int
    path: int


_SIZES: dict[str, tuple[Any, Any]] = {  # quick, full
    "rounds": (7, 15),
    "fresh_rounds": (2, 3),
    "passes": (3, 8),
    "round_ns": (3_000_000, 20_000_000),
    "conversations": (12, 200),
    "prompts": (300, 1_000),
    "children": (20_000, 50_000),
    "leaves": (10_000, 100_000),
    "growth": ((1_000, 30_000), (1_000, 1_000_000)),
    "long_runs": (128, 256),
    "small_leaves": (30_000, 200_000),
    "nodes": (30_000, 200_000),
    "waiting": (2_000, 10_000),
    "batch": (2_000, 10_000),
    "capacity": (2**21, 2**22),  # glibc's heap grows by 128 KiB at a time, which of a small cache is 1 %
    "read_runs": (8, 32),
    "path": (500, 2_000),
}
QUICK = Scale("quick", **{size: quick for size, (quick, _) in _SIZES.items()})
FULL = Scale("full", **{size: full for size, (_, full) in _SIZES.items()})


@dataclass(frozen=True)
class Bar:
    """``system``'s figure is at most ``limit`` times that of ``versus``; without ``versus``, at most ``limit`` itself.

    ``slack`` (in the row's unit) is allowed beside the limit. ``at_least`` turns the comparison round.
    """

    system: str
    versus: str | None
    limit: float
    text: str
    slack: float | None = None
    at_least: bool = False


@dataclass(frozen=True)
class Floor:
    """What a match cannot do without: the compare of its tokens, and a dependent load for each hop.

    ``pieces``: (tokens, how many different keys, how many different runs they are compared with). ``slots``: how many
    it copies out. ``matches``: how many of them the row's figure is about; a figure for one token is about a part of a
    match. ``judged``: whether a figure is to stay near its floor; else a bar of its own says what it may take.
    """

    pieces: tuple[tuple[int, int, int], ...]
    hops: int
    key_bits: int = 64
    slots: int = 0
    matches: float = 1.0
    judged: bool = True

    @property
    def working_set(self) -> int:
        """Bytes that the loads go over: the keys, and the tokens that they meet in one pass over them.

        Not all that the tree holds: what is asked for again and again stays in a processor's cache.
        """
        return sum(count * (keys * self.key_bits // 8 + stored * 4) for count, keys, stored in self.pieces)


@dataclass(frozen=True)
class Row:
    """One line of the table. ``title`` says in words what one call does."""

    name: str
    title: str
    section: str
    unit: str = "µs"
    lower_is_better: bool = True
    parameters: dict[str, Any] = field(default_factory=dict)
    bars: tuple[Bar, ...] = ()
    floor: Floor | None = None


class Work:
    """Measures one row, or several at once. A new object, in a new process, for each system.

    ``alone``: each system has its rounds without the others in between, since it needs the memory. ``afresh``: each
    round is a process of its own, so that its heap is clean. ``machine``: no cache takes part. ``every_core``: it is
    about several at once, so its process is not pinned. ``most_rounds``: so many are enough.
    """

    alone: ClassVar[bool] = False
    afresh: ClassVar[bool] = False
    machine: ClassVar[bool] = False
    every_core: ClassVar[bool] = False
    most_rounds: ClassVar[int | None] = None

    def __init__(self, *rows: Row) -> None:
        self.rows = rows

    @property
    def name(self) -> str:
        return self.rows[0].name

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        """Make all that a round needs."""
        raise NotImplementedError

    def answer(self) -> Any:
        """What every system must find alike: lengths, counts. JSON-able."""

    def round(self) -> dict[str, float]:
        """A figure for each row, in its unit."""
        raise NotImplementedError


def tokens(rng: np.random.Generator, count: int) -> Tokens:
    return rng.integers(0, VOCABULARY, count, np.int64)


def slots(first: int, count: int) -> Tokens:
    """One after the other, as a fresh pool hands them out."""
    return np.arange(first, first + count, dtype=np.int64)


def scattered(first: int, count: int) -> Tokens:
    """The same slots in no order, as from a pool that has been in use for long."""
    return slots(first, count)[_order(count)]


@cache
def _order(count: int) -> Tokens:
    return np.random.default_rng(count).permutation(count)
