"""Record who holds the GIL, for each implementation under the same load of threads.

Each implementation gets a process of its own (profiles/load.py), warmed up and then sampled from outside. The table
puts the profiled window beside an unprofiled one of the same process, so that what the sampling costs can be seen.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console
from rich.table import Table

import triradix
from profiles import folded
from profiles.load import PROMPTS
from triradix.provenance import commit, machine

ROLES = {"match": "matchers", "insert_and_evict": "writer", "schedule": "scheduler"}


class CannotRecord(Exception):
    """Why there is no profile, in one sentence."""


@dataclass(frozen=True)
class Rates:
    """What the load got done, per second."""

    matches: float
    inserts: float
    progress: float


@dataclass(frozen=True)
class Profile:
    """One implementation under the load."""

    implementation: str
    alone: float
    """The scheduler's progress per second without any other thread."""
    control: Rates
    profiled: Rates
    held: dict[str, float]
    """The share of all samples in which a thread of the role held the GIL."""


class Load:
    """A running process of profiles/load.py."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        ready = self._read()
        self.pid = int(ready["pid"])
        self.alone = ready["alone"]

    def _read(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CannotRecord("the load process ended early: what it wrote above says why")
        counts: dict[str, float] = json.loads(line)
        return counts

    def counts(self) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._read()

    @contextmanager
    def measured(self) -> Iterator[list[Rates]]:
        """The rates over the body, appended to the list when it ends."""
        rates: list[Rates] = []
        before = self.counts()
        yield rates
        after = self.counts()
        seconds = after["time"] - before["time"]
        rates.append(Rates(*((after[name] - before[name]) / seconds for name in ("matches", "inserts", "progress"))))


@contextmanager
def load(implementation: str, matchers: int, batch: int) -> Iterator[Load]:
    command = [sys.executable, "-m", "profiles.load", implementation, str(matchers), str(batch)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Load(process)
            process.communicate()
        finally:
            process.kill()
    if process.returncode:
        raise CannotRecord(f"the load over {implementation} failed: what it wrote above says why")


def find_py_spy() -> str:
    beside_python = Path(sys.executable).parent / "py-spy"
    found = str(beside_python) if beside_python.exists() else shutil.which("py-spy")
    if found is None:
        raise CannotRecord("py-spy is not installed: `make setup` installs it")
    return found


def attach(py_spy: str, pid: int, form: str, path: Path, rate: int, seconds: int, blocking: bool) -> None:
    """Sample the running process: by its pid, so that start and imports stay out of the picture."""
    command = [py_spy, "record", "--gil", "--pid", str(pid), "--rate", str(rate), "--duration", str(seconds)]
    command += ["--format", form, "--output", str(path), *([] if blocking else ["--nonblocking"])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or not path.exists():
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CannotRecord(
            f"py-spy cannot attach to process {pid} (it needs root, CAP_SYS_PTRACE or kernel.yama.ptrace_scope = 0): "
            f"{said[0] if said else f'exit status {done.returncode}'}"
        )


def entitle(picture: Path, title: str) -> None:
    """Give a flame graph a title: py-spy's own is its command line, with the paths of this machine."""
    drawn = picture.read_text(encoding="utf-8")
    drawn = re.sub(r'(<text id="title"[^>]*>)[^<]*', lambda found: found[1] + title, drawn)
    picture.write_text(drawn, encoding="utf-8")


def record(implementation: str, out: Path, options: argparse.Namespace) -> Profile:
    py_spy = find_py_spy()
    raw = out / f"{implementation}.folded"
    with load(implementation, options.matchers, options.batch) as running:
        with running.measured() as control:
            time.sleep(options.seconds)
        with running.measured() as profiled:
            attach(py_spy, running.pid, "raw", raw, options.rate, options.seconds, options.blocking)
        picture = out / f"{implementation}.svg"
        attach(py_spy, running.pid, "flamegraph", picture, options.rate, options.seconds, options.blocking)
        entitle(picture, f"{implementation}: who holds the GIL")
    with raw.open(encoding="utf-8") as lines:
        samples = folded.samples_by_role(lines, ROLES)
    # py-spy samples rate × seconds times, and writes down only the samples in which some thread held the GIL.
    taken = options.rate * options.seconds
    held = {role: count / taken for role, count in samples.items()}
    return Profile(implementation, running.alone, control[0], profiled[0], held)


def table(profiles: list[Profile]) -> Table:
    shown = Table(
        title="Who holds the GIL, and what gets done", caption="scheduler speed: 100 % is without any other thread"
    )
    for column in ("", "GIL held by cache", "by scheduler", "matches/s", "inserts/s", "scheduler speed"):
        shown.add_column(column, justify="right" if column else "left", no_wrap=not column)

    def work(rates: Rates, alone: float) -> tuple[str, str, str]:
        return f"{rates.matches:,.0f}", f"{rates.inserts:,.0f}", f"{rates.progress / alone:.0%}"

    for one in profiles:
        by_cache = one.held["matchers"] + one.held["writer"]
        by_scheduler = one.held["scheduler"]
        shown.add_row(one.implementation, f"{by_cache:.0%}", f"{by_scheduler:.0%}", *work(one.profiled, one.alone))
        shown.add_row("  not profiled", "", "", *work(one.control, one.alone), end_section=True)
    return shown


def as_json(profiles: list[Profile], options: argparse.Namespace) -> str:
    def plain(rates: Rates) -> dict[str, float]:
        return {"matches/s": rates.matches, "inserts/s": rates.inserts, "scheduler/s": rates.progress}

    measured = {
        one.implementation: {
            "gil_held": one.held,
            "scheduler_alone/s": one.alone,
            "control": plain(one.control),
            "profiled": plain(one.profiled),
        }
        for one in profiles
    }
    created = datetime.now(timezone.utc).isoformat(timespec="seconds")
    given = {name: getattr(options, name) for name in ("matchers", "batch", "rate", "seconds", "blocking")}
    facts = {"created": created, "commit": commit(), "machine": machine(), "load": given, "implementations": measured}
    return json.dumps(facts, indent=2) + "\n"


def at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m profiles.record", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--implementations", nargs="+", choices=triradix.IMPLEMENTATIONS, default=list(triradix.IMPLEMENTATIONS)
    )
    parser.add_argument("--matchers", type=at_least_one, default=2, help="threads that match (default 2)")
    parser.add_argument("--batch", type=at_least_one, default=64, help="keys a call; 1: single calls (default 64)")
    parser.add_argument("--seconds", type=at_least_one, default=5, help="length of each window (default 5)")
    parser.add_argument("--rate", type=at_least_one, default=100, help="samples a second (default 100)")
    parser.add_argument(
        "--nonblocking", dest="blocking", action="store_false", help="sample without pausing the process: less exact"
    )
    parser.add_argument("--out", type=Path, default=Path("out/profiles"), help="folder (default out/profiles)")
    options = parser.parse_args(arguments)
    if options.batch > PROMPTS:
        parser.error(f"--batch must not be above {PROMPTS}, the prompts of the load")
    return options


def main() -> int:
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    profiles = []
    try:
        for implementation in options.implementations:
            print(f"{implementation}: three windows of {options.seconds} s", file=sys.stderr)
            profiles.append(record(implementation, options.out, options))
    except CannotRecord as reason:
        print(f"profiles: {reason}", file=sys.stderr)
        return 1
    Console().print(table(profiles))
    (options.out / "summary.json").write_text(as_json(profiles, options), encoding="utf-8")
    print(f"stacks, pictures and summary.json: {options.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
