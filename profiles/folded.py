"""Folded stacks, the raw format of py-spy: one line for each stack, its frames joined by ``;``, then its samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

OTHER = "other"


def read(lines: Iterable[str]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Each stack, outermost frame first, with its samples. ValueError names the line that is none."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        stack, _, samples = line.rstrip().rpartition(" ")
        if not stack or not samples.isdecimal():
            raise ValueError(f"line {number} is not a folded stack: {line.rstrip()!r}")
        yield tuple(stack.split(";")), int(samples)


def function(frame: str) -> str:
    """The function of a frame that reads ``function (file:line)``."""
    return frame.partition(" (")[0]


def samples_by_role(lines: Iterable[str], roles: Mapping[str, str]) -> dict[str, int]:
    """The samples of each role, and of `OTHER`. ``roles``: the function that each role's threads run → its name."""
    found = dict.fromkeys([*roles.values(), OTHER], 0)
    for stack, samples in read(lines):
        role = next((roles[name] for name in map(function, stack) if name in roles), OTHER)
        found[role] += samples
    return found
