"""``make serving``: SGLang's real engine on this machine's CPU with each cache, under load from its own client.

What is measured goes to a folder, a line for each run as soon as it is over, and from all of them a table and a page
are made. Runs that are there already are not run again with ``--continue``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console

import triradix
from triradix.files import put
from triradix.provenance import commit, machine
from triradix.replay.traces import TraceError, read_trace
from triradix.serving.environment import DEFAULT, EnvironmentMissing, find, make
from triradix.serving.experiment_page import render
from triradix.serving.experiment_table import print_tables
from triradix.serving.measured import figures
from triradix.serving.model import tiny_model
from triradix.serving.plan import CONCURRENCIES, Run, Settings, left, runs_of
from triradix.serving.session import EngineFailed, end_like_interrupted, engine
from triradix.serving.summary import summed_up
from triradix.serving.trace import scaled_rows

TRACE = "TRIRADIX_SERVING_TRACE"


class CannotContinue(ValueError):
    """What is in the folder does not go with what is asked for."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        python = find(options.sglang) or make(options.sglang)
        settings = _settings(options)
        rows = trace_rows(settings)
        folder = Folder(options.out)
        folder.begin(settings, keep=options.resume)
        measure(python, folder, settings, rows, options.engines)
    except (EnvironmentMissing, EngineFailed, CannotContinue, TraceError) as error:
        print(f"make serving: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("make serving: stopped; --continue goes on", file=sys.stderr)
        return 130
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"make serving: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    report = folder.report()
    if not report["points"]:
        print("make serving: nothing was measured", file=sys.stderr)
        return 1
    folder.write("report.json", json.dumps(report, indent=1))
    options.html.parent.mkdir(parents=True, exist_ok=True)
    put(options.html, render(report))
    console = Console()
    print_tables(report, console if console.is_terminal else Console(width=120))
    rest = sum(map(len, left(settings, folder.done(), None)))
    if rest:
        print(f"{rest} runs are left: the same command with --continue goes on")
    print(f"{options.html} and the lines in {options.out} written")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make serving", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two concurrencies, once each")
    parser.add_argument(
        "--trace",
        type=Path,
        default=os.environ.get(TRACE) or None,
        metavar="PATH",
        help=f"JSON lines as for `make replay`, which is then a second workload (default: the variable {TRACE})",
    )
    parser.add_argument("--caches", type=_names, metavar="NAMES", help="with commas between (default: all six)")
    parser.add_argument(
        "--concurrencies",
        type=_numbers,
        metavar="NUMBERS",
        help=f"with commas between (default: {','.join(map(str, CONCURRENCIES))})",
    )
    parser.add_argument("--repeats", type=_positive, metavar="N", help="(default: 3; --quick 1)")
    parser.add_argument("--requests", type=_positive, metavar="N", help="of each run (default: 128; --quick 96)")
    parser.add_argument("--pool", type=_positive, metavar="TOKENS", help="KV slots of the engine (default: 65536)")
    parser.add_argument("--page-size", type=_positive, metavar="TOKENS", help="(default: 1)")
    parser.add_argument("--schedule-policy", metavar="NAME", help="the engine's (default: fcfs, as in SGLang)")
    parser.add_argument("--seed", type=int, metavar="N", help="of all orders and prompts (default: 0)")
    parser.add_argument("--engines", type=_positive, metavar="N", help="stop after so many starts of the engine")
    parser.add_argument("--continue", action="store_true", dest="resume", help="go on with what is in the folder")
    parser.add_argument("--sglang", type=Path, default=DEFAULT, metavar="FOLDER", help="its environment (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/serving"), metavar="FOLDER", help="(%(default)s)")
    parser.add_argument("--html", type=Path, default=Path("out/serving.html"), metavar="PATH", help="(%(default)s)")
    return parser


def _settings(options: argparse.Namespace) -> Settings:
    given = {
        "caches": options.caches,
        "concurrencies": options.concurrencies,
        "repeats": options.repeats,
        "requests": options.requests,
        "pool_tokens": options.pool,
        "page_size": options.page_size,
        "schedule_policy": options.schedule_policy,
        "trace": options.trace and str(options.trace),
        "seed": options.seed,
    }
    settings = Settings.quick() if options.quick else Settings()
    return replace(settings, **{name: value for name, value in given.items() if value is not None})


class Folder:
    """What has been measured: ``runs.jsonl`` and ``calls.jsonl`` are ours, ``bench_serving.jsonl`` is SGLang's."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, settings: Settings, keep: bool) -> None:
        """Start anew, or go on; CannotContinue if what is there was made with other settings."""
        about = self.path / "settings.json"
        if keep and about.exists():
            found = json.loads(about.read_text(encoding="utf-8"))
            if Settings.read(found["settings"]) != settings:
                raise CannotContinue(f"{self.path} was made with other settings: give the same ones, or another --out")
            return
        self.path.mkdir(parents=True, exist_ok=True)
        for name in ("runs", "calls", "bench_serving"):
            (self.path / f"{name}.jsonl").unlink(missing_ok=True)
        facts = {
            "triradix": triradix.__version__,
            "commit": commit(),
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "machine": machine(),
            "settings": settings.written(),
        }
        self.write("settings.json", json.dumps(facts, indent=1))

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text, encoding="utf-8")

    def append(self, name: str, line: dict[str, Any]) -> None:
        with (self.path / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def lines(self, name: str) -> list[dict[str, Any]]:
        path = self.path / f"{name}.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def done(self) -> list[Run]:
        return runs_of(self.lines("runs"))

    def report(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads((self.path / "settings.json").read_text(encoding="utf-8"))
        return {**facts, **summed_up(self.lines("runs"), self.lines("calls"))}


def trace_rows(settings: Settings) -> list[dict[str, Any]]:
    """The requests of the trace, if there is one; TraceError if they are too few."""
    if not settings.trace:
        return []
    rows = scaled_rows(read_trace(Path(settings.trace)), settings.requests, settings.seed)
    if len(rows) < settings.requests:
        raise TraceError(f"{settings.trace} has {len(rows)} requests, and each run takes {settings.requests}")
    return rows


def measure(python: Path, folder: Folder, settings: Settings, trace: list[dict[str, Any]], at_most: int | None) -> None:
    """Run what is left, and write each run down as soon as it is over."""
    waiting = left(settings, folder.done(), at_most)
    rows = folder.path / "trace.jsonl"
    rows.write_text("".join(json.dumps(each) + "\n" for each in trace), encoding="utf-8")
    model = tiny_model(python)
    for session in waiting:
        first = session[0]
        where = folder.path / "engine"
        print(f"repeat {first.repeat + 1} of {settings.repeats}: {first.cache}", file=sys.stderr, flush=True)
        load_before = os.getloadavg()[0]
        with engine(python, model, settings, first.cache, where) as running:
            for run in session:
                load = os.getloadavg()[0]
                bench, steps = running.run(settings, run, str(rows.absolute()))
                found = figures(steps, bench["completed"])
                folder.append("bench_serving", {"triradix": vars(run), **bench})
                for name, call in found["calls"].items():
                    folder.append("calls", {**vars(run), "call": name, **call})
                line = run_line(run, bench, found) | {"load": load, "load before the engine": load_before}
                folder.append("runs", line)
                print(
                    f"  {run.workload}, {run.concurrency} at a time: {line['requests/s']:.1f} requests/s, "
                    f"{line['cache µs per request']:.0f} µs in the cache each",
                    file=sys.stderr,
                    flush=True,
                )


def run_line(run: Run, bench: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """A run as one flat line: what the client saw, and what the probe saw in the engine."""
    cached = bench["cache_report"]
    return {
        **vars(run),
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "requests": bench["completed"],
        "duration": bench["duration"],
        "requests/s": bench["request_throughput"],
        "TTFT p50 ms": bench["median_ttft_ms"],
        "TTFT p99 ms": bench["p99_ttft_ms"],
        "hit rate": cached["total_cached_tokens"] / max(1, cached["total_prompt_tokens"]),
        **{name: value for name, value in found.items() if name != "calls"},
    }


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_positive(each) for each in text.split(","))


def _names(text: str) -> tuple[str, ...]:
    from triradix.serving.engine import BACKENDS

    names = tuple(text.split(","))
    unknown = [name for name in names if name not in BACKENDS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown cache {unknown[0]!r}; allowed: {', '.join(BACKENDS)}")
    return names


if __name__ == "__main__":
    end_like_interrupted()
    sys.exit(main())
