"""Examining each implementation in a process of its own, and judging what was found."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import triradix
from triradix.doctor.latency import TOKENS, most

PARTS = ("import", "self-test", "fork", "latency")
PATIENCE_S = 60.0
"""Beside the time that the latency takes. In order, an implementation takes some two seconds."""


@dataclass(frozen=True)
class Trouble:
    """Something that is off, and what puts it right."""

    reason: str
    fix: str


@dataclass
class Finding:
    """What was found about one implementation. ``parts``: what each part of the examination told, as far as it came."""

    name: str
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)


def examine(name: str, seconds: float, patience: float = PATIENCE_S) -> Finding:
    """Import, test, fork and time an implementation. ``seconds``: how long its matches are timed; 0: not at all."""
    command = [sys.executable, "-m", "triradix.doctor.worker", name, str(seconds)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        told, complained = process.communicate(timeout=patience + seconds)
        hung = False
    except subprocess.TimeoutExpired:
        process.kill()
        told, complained = process.communicate()
        hung = True
    parts = [json.loads(line) for line in told.splitlines()]
    finding = Finding(name, {part.pop("part"): part for part in parts})
    finding.troubles += _judged(finding)
    if hung:
        finding.troubles.append(
            Trouble(f"the {_unfinished(finding)} hung for {patience + seconds:g} s", _reinstall(name))
        )
    elif process.returncode:
        finding.troubles.append(_end(finding, process.returncode, complained))
    return finding


def _judged(finding: Finding) -> list[Trouble]:
    name, parts = finding.name, finding.parts
    found: list[Trouble] = []
    if fault := parts.get("import", {}).get("fault"):
        fix = "unset TRIRADIX_LOG, or set it to a level" if "TRIRADIX_LOG" in fault else _reinstall(name)
        return [Trouble(f"it cannot be imported: {fault}", fix)]
    if built := parts.get("import", {}).get("built"):
        if built["version"] != triradix.__version__:
            versions = f"its version is {built['version']}, that of triradix {triradix.__version__}"
            found.append(Trouble(f"{versions}; they must be the same", _reinstall(name)))
        if built["profile"] != "release":
            found.append(
                Trouble(f"it is a {built['profile']} build ({built['compiler']}), which is slow", _reinstall(name))
            )
    for part in ("self-test", "fork"):
        if "fault" in parts.get(part, {}):
            found.append(Trouble(f"{part}: {parts[part]['fault']}", _reinstall(name)))
    if took := parts.get("latency"):
        limit = most(name, took["empty_call"])
        if took["p50"] > limit:
            found.append(
                Trouble(
                    f"a match of {TOKENS} tokens takes {took['p50'] / 1000:.2f} µs; "
                    f"expected at most {limit / 1000:.2f}",
                    "see whether this is a debug or emulated build, or run it again when the machine is less busy",
                )
            )
    return found


def _end(finding: Finding, code: int, complained: str) -> Trouble:
    part = _unfinished(finding)
    if code >= 0:
        last = (complained.strip().splitlines() or ["nothing was said"])[-1]
        return Trouble(f"the {part} ended with exit code {code}: {last}", _reinstall(finding.name))
    killer = signal.Signals(-code).name
    if killer == "SIGILL":
        return Trouble(
            f"the {part} was killed by SIGILL: this processor lacks an instruction that the build uses",
            "build it on this machine, or for a processor that all of your machines can be: RUSTFLAGS and CFLAGS "
            "without -march=native",
        )
    if killer == "SIGKILL":
        return Trouble(f"the {part} was killed by SIGKILL, as by a lack of memory", "give the container more memory")
    return Trouble(f"the {part} was killed by {killer}", _reinstall(finding.name))


def _unfinished(finding: Finding) -> str:
    return next((part for part in PARTS if part not in finding.parts), "end of the examination")


def _reinstall(name: str) -> str:
    wanted = f"triradix{'[rust]' if name == 'rust' else ''}=={triradix.__version__}"
    return f"pip install --force-reinstall '{wanted}', or in a checkout: make build"
