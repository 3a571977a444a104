"""Examining each implementation in a process of its own, and judging what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import triradix
from triradix.doctor.latency import TOKENS, most
from triradix.doctor.process import Ended, run
from triradix.processes import signal_name
from triradix.versions import reinstall

PARTS = ("import", "self-test", "fork", "latency")
PATIENCE_S = 60.0
"""Beside the time that the latency takes. In order, an implementation takes some two seconds.

Whoever ends the doctor after some time (a probe of Kubernetes) should wait longer, or it cannot say what hung.
"""


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
    finding = Finding(name)
    try:
        ended = run(name, seconds, patience + seconds)
    except OSError as error:
        fix = "raise the limits of this shell or container (ulimit -a shows them)"
        finding.troubles.append(Trouble(f"its process cannot be started: {error.strerror}", fix))
        return finding
    finding.parts = {part.pop("part"): part for part in ended.told if part["part"] in PARTS}
    finding.troubles += _judged(finding)
    unfinished = _unfinished(finding, seconds)
    if ended.code is None:
        reason = f"the {unfinished or _END} hung for {patience + seconds:g} s"
        finding.troubles.append(Trouble(reason, reinstall(name)))
    elif ended.code or unfinished:
        finding.troubles.append(_end(name, unfinished or _END, ended))
    return finding


def _judged(finding: Finding) -> list[Trouble]:
    name, parts = finding.name, finding.parts
    found: list[Trouble] = []
    if imported := parts.get("import"):
        if fault := imported.get("fault"):
            return [Trouble(f"it cannot be imported: {fault}", _fix_of_import(name, fault))]
        found += _judged_build(name, imported["built"], imported["unknown"])
    for part in ("self-test", "fork"):
        if "fault" in parts.get(part, {}):
            found.append(Trouble(f"{part}: {parts[part]['fault']}", reinstall(name)))
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


def _judged_build(name: str, built: dict[str, str], unknown: str) -> list[Trouble]:
    found = []
    if unknown:
        found.append(Trouble(f"it does not say how it was built: {unknown}", reinstall(name)))
    if (version := built.get("version", triradix.__version__)) != triradix.__version__:
        versions = f"its version is {version}, that of triradix {triradix.__version__}"
        found.append(Trouble(f"{versions}; they must be the same", reinstall(name)))
    if (profile := built.get("profile", "release")) != "release":
        compiler = built.get("compiler", "compiler unknown")
        found.append(Trouble(f"it is a {profile} build ({compiler}), which is slow", reinstall(name)))
    return found


def _end(name: str, part: str, ended: Ended) -> Trouble:
    code = ended.code or 0
    if code >= 0:
        last = (ended.complained.strip().splitlines() or ["nothing was said"])[-1]
        early = "" if code else "early, "
        return Trouble(f"the {part} ended {early}with exit code {code}: {last}", reinstall(name))
    killer = signal_name(-code)
    if killer == "SIGILL":
        return Trouble(
            f"the {part} was killed by SIGILL: this processor lacks an instruction that the build uses",
            "build it on this machine, or for a processor that all of your machines can be: RUSTFLAGS and CFLAGS "
            "without -march=native",
        )
    if killer == "SIGKILL":
        return Trouble(f"the {part} was killed by SIGKILL, as by a lack of memory", "give the container more memory")
    return Trouble(f"the {part} was killed by {killer}", reinstall(name))


_END = "end of the examination"


def _unfinished(finding: Finding, seconds: float) -> str | None:
    """The part that it should have told next; None if it told all."""
    if "fault" in finding.parts.get("import", {}):
        return None
    wanted = [part for part in PARTS if seconds or part != "latency"]
    return next((part for part in wanted if part not in finding.parts), None)


def _fix_of_import(name: str, fault: str) -> str:
    if fault.startswith("ValueError: TRIRADIX_LOG_TO "):
        return "unset TRIRADIX_LOG_TO, or set it to stderr or logging"
    if fault.startswith("ValueError: TRIRADIX_LOG:"):
        return "unset TRIRADIX_LOG, or set it to a level"
    return reinstall(name)
