"""``make simulate``: where the cache's time on the CPU begins to show in the time to the first token, on a page.

The points run in the engine's environment (`triradix.serving.sweep`); here they are collected and drawn, beside what
the real engine takes on this machine's CPU where both can be run (`triradix.serving.validation`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

import triradix
from triradix.files import put
from triradix.provenance import commit, machine
from triradix.serving.environment import DEFAULT, EnvironmentMissing, find, make, variables
from triradix.serving.session import end_like_interrupted
from triradix.serving.simulation_page import render
from triradix.serving.validation import validate, written

Report = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make simulate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer points and requests")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="of each point (default: 3)")
    parser.add_argument("--sglang", type=Path, default=DEFAULT, metavar="FOLDER", help="its environment (%(default)s)")
    parser.add_argument("--json", type=Path, default=Path("out/simulation.json"), help="(default: %(default)s)")
    parser.add_argument("--html", type=Path, default=Path("out/simulation.html"), help="(default: %(default)s)")
    parser.add_argument(
        "--validation",
        default="run",
        metavar="run|no|PATH",
        help="beside the real engine on this CPU: run it, some five minutes (the default), leave it out, or take what "
        "`python -m triradix.serving.validation PATH` wrote",
    )
    options = parser.parse_args(arguments)
    try:
        python = find(options.sglang) or make(options.sglang)
        validation = validate(python) if options.validation == "run" else written(options.validation)
        report = {**run(python, options.quick, options.repeats), "validation": validation}
    except (EnvironmentMissing, OSError, RuntimeError, ValueError) as error:
        print(f"make simulate: {error}", file=sys.stderr)
        return 1
    for path, text in ((options.json, json.dumps(report, indent=1)), (options.html, render(report))):
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path, text)
    print(f"{options.json} and {options.html} written")
    return 0


def run(python: Path, quick: bool, repeats: int) -> Report:
    """RuntimeError if the simulation stops."""
    command = [str(python), "-m", "triradix.serving.sweep", json.dumps({"quick": quick, "repeats": repeats})]
    lines, said = [], ["no reason given"]
    with subprocess.Popen(
        command, env=variables(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("POINT "):
                lines.append(json.loads(line.removeprefix("POINT ")))
                point = lines[-1]
                print(f"{point['sweep']} = {point['at']:,}, {point['cache']}", file=sys.stderr, flush=True)
            elif line.strip():
                said.append(line.strip())
    if process.returncode:
        raise RuntimeError(f"the simulation stopped: {said[-1]}")
    return {
        "triradix": triradix.__version__,
        "commit": commit(),
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(),
        "command": f'make simulate ARGS="{"--quick " if quick else ""}--repeats {repeats}"',
        "repeats": repeats,
        "points": summed_up(lines),
    }


def summed_up(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each point and cache: medians over the repeats, and the extremes of the cache's time."""
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault((line["sweep"], line["at"], line["cache"]), []).append(line)
    entries = []
    for group in groups.values():
        entry = {name: group[0][name] for name in ("sweep", "varies", "at", "gpu", "llm", "cache", "load", "hit rate")}
        for name in ("cache per request", "longest cache step"):
            entry[name] = median(line[name] for line in group)
        each = [line["cache per request"] for line in group]
        entry["cache per request, from to"] = [min(each), max(each)]
        entry["share"] = median(line["cache seconds"] / line["gpu seconds"] for line in group)
        for clock in ("overlap", "no overlap"):
            times, free = ([line["first_token"][name] for line in group] for name in (clock, f"{clock}, free cache"))
            entry[f"added, {clock}"] = {
                level: median(with_it[level] - without[level] for with_it, without in zip(times, free, strict=True))
                for level in ("50", "99")
            }
        entry["first token"] = {level: group[0]["first_token"]["overlap, free cache"][level] for level in ("50", "99")}
        entries.append(entry)
    return entries


if __name__ == "__main__":
    end_like_interrupted()
    sys.exit(main())
