"""Record who holds the GIL, who runs and who waits, for each implementation under the same load of threads.

Each implementation gets a process of its own (profiles/load.py) for each number of threads, warmed up and then looked
at in four windows: an unprofiled one, and one for each kind of recording (profiles/sampler.py).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console

import triradix
from profiles import folded, rows, sampler, waits
from profiles.arguments import a_python, a_second, at_least_one, make_folder
from profiles.flamegraph import flame_graph
from profiles.load import PROMPTS, ROLES
from profiles.sampler import CannotRecord
from profiles.table import tables
from triradix.files import put
from triradix.provenance import commit, machine

SCHEMA = 2


@dataclass(frozen=True)
class Window:
    """What the load got done while it was looked at, or left alone; per second."""

    matches: float
    inserts: float
    progress: float
    p99: float | None
    """Of a matcher's call, in seconds; None: there was none."""
    processor: dict[str, dict[str, float]]
    """Role → its share of the time on a processor, ``queued`` for one, and ``waiting``: for the GIL or a lock. A
    thread's mean, by Linux's own count."""


class Load:
    """A running process of profiles/load.py."""

    def __init__(self, process: subprocess.Popen[str], matchers: int) -> None:
        self._process = process
        self._threads = {"matchers": matchers, "writer": 1, "scheduler": 1}
        ready = self._read()
        self.pid = int(ready["pid"])
        self.alone: float = ready["alone"]

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CannotRecord("the load process ended early: what it wrote above says why")
        counts: dict[str, Any] = json.loads(line)
        return counts

    def _ask(self, what: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return self._read()

    @contextmanager
    def window(self) -> Iterator[list[Window]]:
        """What was done over the body, appended to the list when it ends."""
        found: list[Window] = []
        before = self._ask("begin")
        yield found
        after = self._ask("end")
        seconds = after["time"] - before["time"]
        matches, inserts, progress = (
            (after[name] - before[name]) / seconds for name in ("matches", "inserts", "progress")
        )
        processor = {}
        for role, threads in self._threads.items():
            ran, queued = (
                (then - once) / seconds / threads
                for once, then in zip(before["processor"][role], after["processor"][role], strict=True)
            )
            processor[role] = {"on": ran, "queued": queued, "waiting": max(0.0, 1 - ran - queued)}
        found.append(Window(matches, inserts, progress, after["p99"], processor))


@contextmanager
def load(python: str, implementation: str, matchers: int, batch: int) -> Iterator[Load]:
    command = [python, "-m", "profiles.load", implementation, str(matchers), str(batch)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folded.ROOT
    ) as process:
        try:
            yield Load(process, matchers)
            process.communicate()
        finally:
            process.kill()
    if process.returncode:
        raise CannotRecord(f"the load over {implementation} failed: what it wrote above says why")


def record(implementation: str, matchers: int, options: argparse.Namespace, source: str) -> dict[str, Any]:
    """One run of the load, JSON-able; its recordings stand in files of their own."""
    py_spy = sampler.find_py_spy()
    with load(options.python, implementation, matchers, options.batch) as running:
        with running.window() as control:
            time.sleep(options.seconds)
        recordings = {}
        for kind in sampler.KINDS:
            with running.window() as window:
                samples = sampler.sample(running.pid, kind, options.rate, options.seconds, py_spy=py_spy)
            name = f"{implementation}-{source}-{matchers}-{kind}"
            recordings[kind] = {"name": name, **figures(samples), "window": asdict(window[0])}
            keep(
                options.out / name,
                f"{implementation}, {rows.matchers_text(matchers)}, {kind}",
                samples,
                recordings[kind],
            )
        alone = running.alone
    return {
        "implementation": implementation,
        "matchers": matchers,
        "scheduler_alone": alone,
        "control": asdict(control[0]),
        "recordings": recordings,
    }


def figures(samples: sampler.Samples) -> dict[str, Any]:
    """The shares of each role, in threads: 0.5 is one thread half of the time."""
    shares = folded.samples_by_role(samples.stacks.items(), ROLES)
    found: dict[str, Any] = {
        "flags": list(samples.flags),
        "intervals": samples.intervals,
        "errors": samples.errors,
        "shares": {role: count / samples.intervals for role, count in shares.items()},
    }
    if samples.kind == "idle":
        found["states"] = states(samples)
    return found


def states(samples: sampler.Samples) -> dict[str, dict[str, float]]:
    """Role → what its threads do → its share of their time."""
    found = {role: dict.fromkeys((waits.RUNNING, waits.GIL, waits.LOCK, waits.OUTSIDE), 0.0) for role in ROLES.values()}
    for stack, count in samples.stacks.items():
        role = folded.role(stack, ROLES)
        if role != folded.OTHER:
            found[role][waits.state(stack)] += count
    return {
        role: {state: count / max(1, sum(counts.values())) for state, count in counts.items()}
        for role, counts in found.items()
    }


def keep(stem: Path, title: str, samples: sampler.Samples, facts: dict[str, Any]) -> None:
    """The folded stacks, speedscope's JSON, the flame graph, and what they are of, side by side."""
    texts = {
        ".folded": folded.write(samples.stacks),
        ".speedscope.json": json.dumps(samples.speedscope),
        ".svg": flame_graph(samples.stacks, title).file(),
        ".json": json.dumps({"title": title, **facts}, indent=2) + "\n",
    }
    for suffix, text in texts.items():
        stem.with_name(stem.name + suffix).write_text(text, encoding="utf-8")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--matchers", nargs="+", type=at_least_one, default=[1, 2, 4, 8], help="threads that match (default 1 2 4 8)"
    )
    parser.add_argument("--batch", type=at_least_one, default=64, help="keys a call; 1: single calls (default 64)")
    parser.add_argument("--seconds", type=at_least_one, default=3, help="length of each window (default 3)")
    parser.add_argument("--rate", type=a_second, default=50, help="samples a second (default 50)")


def add_places(parser: argparse.ArgumentParser) -> None:
    """What `record` and the collector's pauses have in common."""
    parser.add_argument(
        "--implementations", nargs="+", choices=triradix.IMPLEMENTATIONS, default=list(triradix.IMPLEMENTATIONS)
    )
    parser.add_argument(
        "--python",
        type=a_python,
        default=sys.executable,
        help="of the environment whose trees are recorded (default: this one)",
    )
    parser.add_argument("--out", type=Path, default=Path("out/profiles"), help="folder (default out/profiles)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Record everything that the options ask for, write summary.json, and show it."""
    if options.batch > PROMPTS:
        raise CannotRecord(f"--batch must not be above {PROMPTS}, the prompts of the load")
    make_folder(options.out)
    source = commit() or "unknown"
    runs = []
    for implementation in options.implementations:
        for matchers in sorted(set(options.matchers)):
            print(f"{implementation}, matchers: {matchers}; four windows of {options.seconds} s", file=sys.stderr)
            runs.append(record(implementation, matchers, options, source))
    summary = {
        "schema": SCHEMA,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": source,
        "machine": machine(),
        "load": {name: getattr(options, name) for name in ("batch", "rate", "seconds")},
        "runs": runs,
    }
    put(options.out / "summary.json", json.dumps(summary, indent=2) + "\n")
    for shown in tables(summary):
        Console().print(shown)
    print(f"stacks, flame graphs and summary.json: {options.out}")
    return summary
