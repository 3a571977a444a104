"""``triradix doctor``: its arguments, what it prints and its exit code."""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

import triradix
from triradix.doctor.examination import Finding, examine
from triradix.doctor.latency import TOKENS, most
from triradix.options import add_implementations

_NOTES = """\
Exit codes: 0 all is in order; 1 something is off: reason and fix are printed; 2 the arguments cannot be used.
In a pod: kubectl exec POD -- triradix doctor --implementations rust"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="say whether what is installed here is in order",
        description="Import, test, fork and time each implementation as it is installed here.",
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_implementations(parser)
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=2.0,
        metavar="S",
        help="how long the matches of each are timed; 0: not at all (default: 2)",
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def doctor(options: argparse.Namespace) -> int:
    findings = []
    if not options.json:
        _print_place()
    for name in options.implementations:
        finding = examine(name, options.seconds)
        findings.append(finding)
        if not options.json:
            _print_finding(finding)
    off = [finding.name for finding in findings if finding.troubles]
    if options.json:
        print(json.dumps(_as_json(findings), indent=1))
    elif off:
        print(f"off: {', '.join(off)}")
    else:
        print("all is in order")
    return 1 if off else 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text} is out of range: 0 to 3600")
    return seconds


def place() -> dict[str, Any]:
    """Where it runs. ``cores``: those that this process may use."""
    import numpy as np

    return {
        "triradix": triradix.__version__,
        "path": str(Path(triradix.__file__).parent),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver()) or 'libc unknown'}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def _print_place() -> None:
    here = place()
    print(f"triradix {here['triradix']} in {here['path']}")
    print(f"{here['python']}, NumPy {here['numpy']}, {here['system']}, {here['cores']} cores", end="\n\n", flush=True)


def _print_finding(finding: Finding) -> None:
    print(f"{finding.name}: {'off' if finding.troubles else 'in order'}")
    for what, text in _lines(finding):
        _print_line(what, text)
    for trouble in finding.troubles:
        _print_line("reason", trouble.reason)
        _print_line("fix", trouble.fix)
    print(flush=True)


def _print_line(what: str, text: str) -> None:
    """One line, whatever stands in a path or in the text of somebody's exception."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    print(f"  {what:<10}{' '.join(shown.split())}")


def _lines(finding: Finding) -> list[tuple[str, str]]:
    told = finding.parts
    lines = []
    if "path" in (imported := told.get("import", {})):
        built = imported["built"]
        lines.append(("from", imported["path"]))
        profile, compiler, abi, cpu = (built.get(key, "unknown") for key in ("profile", "compiler", "abi", "cpu"))
        lines.append(("built", f"{profile}, {compiler}, ABI {abi}"))
        lines.append(("processor", cpu))
        lines.append(("GIL", "on" if imported["gil"] else "off"))
        lines.append(("log", imported["log"]))
    for part in ("self-test", "fork"):
        if "seconds" in told.get(part, {}):
            lines.append((part, f"passed in {told[part]['seconds']:.2f} s"))
    if took := told.get("latency"):
        p50, p99 = took["p50"] / 1000, took["p99"] / 1000
        limit = most(finding.name, took["empty_call"]) / 1000
        lines.append(
            ("latency", f"a match of {TOKENS} tokens {p50:.2f} µs, p99 {p99:.2f}; expected at most {limit:.2f}")
        )
    return lines


def _as_json(findings: list[Finding]) -> dict[str, Any]:
    return {
        "ok": not any(finding.troubles for finding in findings),
        "place": place(),
        "implementations": {
            finding.name: {
                "ok": not finding.troubles,
                **finding.parts,
                **_expected(finding),
                "off": [{"reason": trouble.reason, "fix": trouble.fix} for trouble in finding.troubles],
            }
            for finding in findings
        },
    }


def _expected(finding: Finding) -> dict[str, float]:
    took = finding.parts.get("latency")
    return {"latency_expected_ns": most(finding.name, took["empty_call"])} if took else {}
