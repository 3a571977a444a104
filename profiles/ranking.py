"""Which functions would Rust pay for? The four questions, answered from what was measured, one of them by a person."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from profiles import folded, sampler, waits
from profiles.program import Function

OFTEN = 1_000
"""Calls a second above which a function is called often."""
OWN_LOOP = 0.2
OWN_MOST = 0.8
"""Or else it is a loop that turns often: its own lines take this share of the time, and this share of what it takes
with all that it calls. (A loop that only calls others is not meant: those are.)"""
WORTH = 0.05
"""The least share of the time that a rewrite must be able to save."""
HANDED_ON = 0.9
"""Of its time, what a single function that it calls takes, and that once a call: then that one is to be looked at."""
BUSY = 0.8
"""The share of its time in which it must run, or want to, for being bound by processor or memory."""
BORDER = 5
"""A call must cost so many times what crossing into Rust costs, or too little is left to be saved."""
LEFT = 25
"""Samples outside a function by which the rest of the time is known to a fifth (counted events: 1 / √25). With fewer,
only the least that the bound may be can be said."""
OTHERS = 0.1
"""Threads that wait for the GIL on average, above which others are held up."""


@dataclass(frozen=True)
class Measured:
    """One function."""

    name: str
    where: Function
    caller: str
    """Who calls it most of the time, "" if nobody of the program does: a candidate within another one is part of it."""
    callee: str
    """Which one function takes nearly all of its time, once a call; "" if none does."""
    held: float
    """The share of the time in which it, or what it calls, held the GIL: what a rewrite could save at most."""
    own: float
    """The share in which its own lines held it."""
    busy: float
    """Of its time, the share in which it ran or waited for the GIL: not for a lock, a file, the network."""
    wall: float
    """The threads that were in it, on average."""
    calls: float | None
    """A second; None: it was not counted."""
    cost: float | None
    """Seconds of processor time a call, with what it calls."""


@dataclass(frozen=True)
class Verdict:
    function: Measured
    often: bool | None
    bound: bool
    dear: bool | None
    """Whether a call costs so much that the border does not count."""
    holds_up: bool
    saving: float
    """Of the time, at most: Amdahl's bound, after the cost of crossing."""
    candidate: bool
    why: str
    samples: int
    """In which the shares were counted."""

    @property
    def speedup(self) -> float | None:
        """Of the whole program, at most; None if the samples cannot tell, for next to none of them is outside."""
        rest = 1 - self.saving
        return 1 / rest if rest * self.samples >= LEFT else None

    @property
    def speedup_text(self) -> str:
        """In the digits that the samples are good for."""
        if self.speedup is not None:
            return _times(self.speedup)
        outside = max(0.0, 1 - self.saving) * self.samples
        # Not more than this many, with 97.5 % confidence: close above the exact limit of a Poisson count.
        outside += 2 * outside**0.5 + 4
        return f"> {_times(max(1.0, self.samples / outside))}"


def _times(factor: float) -> str:
    return f"{factor:.{2 if factor < 1.2 else 1 if factor < 10 else 0}f}×"


def measured(
    gil: sampler.Samples,
    cpu: sampler.Samples,
    idle: sampler.Samples,
    calls: Mapping[Function, float] | None,
    processor: float | None,
) -> list[Measured]:
    """Every function of the program that was seen. ``processor``: its processor time a second, of all threads."""
    held = _inclusive(gil)
    running, total = _inclusive(cpu), max(1, sum(cpu.stacks.values()))
    seen: Counter[str] = Counter()
    busy: Counter[str] = Counter()
    own: Counter[str] = Counter()
    callers: dict[str, Counter[str]] = {}
    callees: dict[str, Counter[str]] = {}
    for stack, count in gil.stacks.items():
        frames = python_frames(stack)
        if frames:
            own[frames[-1]] += count
        pairs = {pair for pair in pairwise(filter(is_programs_own, frames)) if pair[0] != pair[1]}
        for caller, frame in pairs:
            callers.setdefault(frame, Counter())[caller] += count
            if frames.count(caller) == 1:  # else the callee's time is the caller's again
                callees.setdefault(caller, Counter())[frame] += count
    for stack, count in idle.stacks.items():
        wants = waits.state(stack) in (waits.RUNNING, waits.GIL)
        for frame in set(python_frames(stack)):
            seen[frame] += count
            busy[frame] += count * wants
    found = []
    for frame in {*held, *seen}:
        if not is_programs_own(frame):
            continue
        where = place(frame)
        rate = None if calls is None else calls.get(where, 0.0)
        cost = running[frame] / total * processor / rate if rate and processor else None
        callee, handed_on = callees[frame].most_common(1)[0] if frame in callees else ("", 0)
        once = calls is not None and rate and calls.get(place(callee), 0.0) <= rate * (2 - HANDED_ON)
        found.append(
            Measured(
                folded.function(frame),
                where,
                folded.function(callers[frame].most_common(1)[0][0]) if frame in callers else "",
                folded.function(callee) if once and callee and handed_on >= HANDED_ON * held[frame] else "",
                held[frame] / gil.intervals,
                own[frame] / gil.intervals,
                busy[frame] / seen[frame] if seen[frame] else 1.0,
                seen[frame] / idle.intervals,
                rate,
                cost,
            )
        )
    return found


def _inclusive(samples: sampler.Samples) -> Counter[str]:
    found: Counter[str] = Counter()
    for stack, count in samples.stacks.items():
        for frame in set(python_frames(stack)):
            found[frame] += count
    return found


def python_frames(stack: folded.Stack) -> list[str]:
    return [frame for frame in stack if waits.is_python(frame)]


def place(frame: str) -> Function:
    line = re.search(r":(\d+)\)$", frame)
    # Its own name, without those of the functions and classes that it stands in.
    return folded.file(frame), int(line[1]) if line else 0, folded.function(frame).rpartition(".")[2]


_MACHINERY = re.compile(r"^(<frozen|<string>|runpy\.py|threading\.py|counting/sitecustomize\.py)|sitecustomize\.py")


def is_programs_own(frame: str) -> bool:
    """Not the import system, nor what starts threads and modules."""
    return not _MACHINERY.search(folded.file(frame))


def waiting_for_gil(idle: sampler.Samples) -> float:
    """Threads that wait for the GIL, on average."""
    return sum(count for stack, count in idle.stacks.items() if waits.state(stack) == waits.GIL) / idle.intervals


def rank(
    functions: list[Measured], border: float, waiting: float, better_algorithm: Mapping[str, bool], samples: int
) -> list[Verdict]:
    """The candidates first, those that could save most before the others.

    ``border``: seconds to cross into Rust and back; ``waiting``: threads that wait for the GIL on average;
    ``better_algorithm``: what a person has answered, by the function's name; ``samples``: of which the shares are.
    """
    found = [_judge(one, border, waiting, better_algorithm.get(one.name), samples) for one in functions]
    return sorted(found, key=lambda one: (not one.candidate, -one.saving, -one.function.wall, one.function.where))


def _judge(one: Measured, border: float, waiting: float, better: bool | None, samples: int) -> Verdict:
    loop = one.own >= max(OWN_LOOP, OWN_MOST * one.held)
    often = None if one.calls is None else one.calls > OFTEN or loop
    bound = one.busy >= BUSY
    dear = None if one.cost is None else one.cost >= BORDER * border
    saving = max(0.0, one.held - (one.calls or 0.0) * border)
    others = waiting >= OTHERS
    reasons = [
        (one.held < WORTH, f"it holds the GIL {one.held:.0%} of the time: little to save" + _waits(one)),
        (not bound, f"it waits {1 - one.busy:.0%} of its time for something else than the GIL"),
        (often is False, "it is called rarely, and its own lines take little: look at what it calls"),
        (often is None and one.own < WORTH, "its own lines take little: look at what it calls"),
        (bool(one.callee), f"nearly all of its time is that of {one.callee}, once a call: look at that"),
        (dear is False, f"a call costs less than {BORDER} crossings"),
        (saving < WORTH, "crossing would take back what is saved"),
        (better is True, "a better algorithm comes first"),
    ]
    against = next((reason for applies, reason in reasons if applies), "")
    if against:
        why = against
    elif often is None:
        why = "by its share alone: how often it is called was not counted"
    elif one.calls is not None and one.calls <= OFTEN:
        why = "called rarely, but a loop of its own"
    else:
        why = "called often, and dear enough"
    return Verdict(one, often, bound, dear, others and one.held >= WORTH, saving, not against, why, samples)


def _waits(one: Measured) -> str:
    return f", it waits {1 - one.busy:.0%} of its time" if one.busy < BUSY else ""
