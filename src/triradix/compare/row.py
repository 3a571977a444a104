"""What is measured, and what is expected of it: rows with their bars, and the sizes that a run takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from triradix.compare.adapter import Adapter, Tokens

VOCABULARY = 128_000


@dataclass(frozen=True)
class Scale:
    """How large and how long. ``round_ns``: what the timed part of a round takes, where a row can choose."""

    name: str
    rounds: int
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


QUICK = Scale(
    "quick", 5, 3_000_000, 12, 200, 20_000, 10_000, (1_000, 30_000), 128, 30_000, 50_000, 4_000, 4_000, 2**18, 4
)
FULL = Scale(
    "full",
    15,
    20_000_000,
    200,
    1_000,
    50_000,
    100_000,
    (1_000, 1_000_000),
    256,
    200_000,
    200_000,
    10_000,
    10_000,
    2**20,
    16,
)


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

    ``pieces``: (tokens, how many different keys, how many different runs they are compared with). The loads go over a
    working set of so many bytes.
    """

    pieces: tuple[tuple[int, int, int], ...]
    hops: int
    working_set: int
    key_bits: int = 64


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
    round is a process of its own, so that its heap is clean. ``machine``: no cache takes part.
    """

    alone: ClassVar[bool] = False
    afresh: ClassVar[bool] = False
    machine: ClassVar[bool] = False

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
    return np.arange(first, first + count, dtype=np.int64)
