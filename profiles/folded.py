"""Folded stacks, the raw format of flame graphs: one line for each stack, its frames joined by ``;``, then its samples.

Frames read ``function (file:line)``, the outermost first. py-spy writes speedscope's JSON, from which they are taken:
that has whole paths, and tells the threads apart.
"""

from __future__ import annotations

import re
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Stack = tuple[str, ...]
OTHER = "other"
NO_FRAMES = "[no frames]"
"""The stack of a thread that changed while it was read: with --nonblocking py-spy now and then finds it empty."""
ROOT = Path(__file__).resolve().parent.parent
_PLACES = [
    f"{ROOT}/.profiling/src",
    str(ROOT),
    *(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")),
]
_EDITABLE = re.compile(r"^build/__editable__[^/]*/")
_HASH = re.compile(r"::h[0-9a-f]{16}$")
_RUST = {"$LT$": "<", "$GT$": ">", "$u20$": " ", "$RF$": "&", "$C$": ",", "$u7b$": "{", "$u7d$": "}", "..": "::"}
_MANGLED = re.compile("|".join(map(re.escape, _RUST)))
"""What rustc writes for signs that a linker would not take."""
_INSTALLED = ("site-packages", "python3.")
"""What begins a path of an installed module, wherever its environment is."""


def read(lines: Iterable[str]) -> Iterator[tuple[Stack, int]]:
    """Each stack, outermost frame first, with its samples. ValueError names the line that is none."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        stack, _, samples = line.rstrip().rpartition(" ")
        if not stack or not samples.isdecimal():
            raise ValueError(f"line {number} is not a folded stack: {line.rstrip()!r}")
        yield tuple(stack.split(";")), int(samples)


def write(stacks: Mapping[Stack, int]) -> str:
    return "".join(f"{';'.join(stack)} {samples}\n" for stack, samples in sorted(stacks.items()))


def of_speedscope(document: Mapping[str, Any]) -> Counter[Stack]:
    """The samples of each stack, over all threads."""
    frames = [frame_text(frame) for frame in document["shared"]["frames"]]
    stacks: Counter[Stack] = Counter()
    for thread in document["profiles"]:
        stacks.update(tuple(frames[at] for at in sample) or (NO_FRAMES,) for sample in thread["samples"])
    return stacks


def frame_text(frame: Mapping[str, Any]) -> str:
    """``function (file:line)``; a frame of a library without lines has its name alone."""
    name, file, line = str(frame["name"]), frame.get("file"), frame.get("line")
    if name.startswith("0x"):  # an address, another one in each process
        name = "[no name]"
    name = plain_name(name)
    where = f"{short(file or '?')}:{line}" if line else short(file or "?")
    return f"{name} ({where})".replace(";", ",").replace("\n", " ")


def plain_name(name: str) -> str:
    """The name of a Rust function as it is written: without its hash."""
    if not _HASH.search(name):
        return name
    return _MANGLED.sub(lambda found: _RUST[found[0]], _HASH.sub("", name)).replace("_<", "<")


def short(file: str) -> str:
    """The path without what differs from machine to machine; a library is its name."""
    if ".so" in Path(file).suffixes:
        return Path(file).name
    for place in _PLACES:
        if file.startswith(f"{place}/"):
            file = _EDITABLE.sub("", file[len(place) + 1 :])
            break
    parts = Path(file.lstrip("/")).parts
    for at in range(len(parts) - 1, -1, -1):
        if parts[at].startswith(_INSTALLED):
            return "/".join(parts[at + 1 :])
    return "/".join(parts[-3:]) if file.startswith("/") else file


def function(frame: str) -> str:
    """The function of a frame that reads ``function (file:line)``."""
    return frame.rpartition(" (")[0] or frame


def file(frame: str) -> str:
    """The file of a frame, "" if it has none."""
    return frame.rpartition(" (")[2].rstrip(")").rpartition(":")[0]


def role(stack: Stack, roles: Mapping[str, str]) -> str:
    """Whose stack it is; ``roles``: the function that each role's threads run → its name."""
    return next((roles[name] for name in map(function, stack) if name in roles), OTHER)


def samples_by_role(stacks: Iterable[tuple[Stack, int]], roles: Mapping[str, str]) -> dict[str, int]:
    """The samples of each role, and of `OTHER`."""
    found = dict.fromkeys([*roles.values(), OTHER], 0)
    for stack, samples in stacks:
        found[role(stack, roles)] += samples
    return found


def shares(stacks: Mapping[Stack, int]) -> dict[Stack, float]:
    """Of all samples, so that recordings of different lengths can be compared."""
    total = sum(stacks.values())
    return {stack: samples / total for stack, samples in stacks.items()}
