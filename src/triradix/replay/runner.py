"""Starts one process for each implementation, one after the other, and demands that they agree."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import triradix
from triradix.processes import python, signal_name
from triradix.replay.recorder import Measurement
from triradix.replay.requests import Trace
from triradix.replay.worker import Job, Settings


class ReplayError(RuntimeError):
    """A replay failed, or two implementations disagree. The message says which and where."""


Watcher = Callable[[str, int], None]
"""Is told an implementation and how many requests have come in: shows how far the replays are."""


def check_implementations(implementations: Sequence[str], settings: Settings) -> None:
    """Make (and drop) a cache of each: what cannot be imported raises ImportError before anything runs."""
    for name in implementations:
        try:
            triradix.create(name, page_size=settings.page_size, eviction_policy=settings.policy)
        except ImportError as error:
            raise ImportError(f"the {name} implementation cannot be imported: {error}") from error


def run_all(trace: Trace, settings: Settings, implementations: Sequence[str], watch: Watcher) -> list[Measurement]:
    """Measure all, in the order given; ReplayError as soon as one fails or differs from the first."""
    measured: list[Measurement] = []
    for name in implementations:
        measurement = _run(Job(name, trace, settings), watch)
        if measured:
            difference = first_difference(measured[0], measurement)
            if difference:
                raise ReplayError(difference)
        measured.append(measurement)
    return measured


def first_difference(one: Measurement, other: Measurement) -> str | None:
    """A sentence about the first request that two implementations answered differently, None if there is none."""
    differs = (one.hit != other.hit) | (one.evicted != other.evicted) | (one.digest != other.digest)
    if not differs.any():
        return None
    at = int(np.argmax(differs))
    facts = [f"{each.implementation} hit {each.hit[at]} and evicted {each.evicted[at]} tokens" for each in (one, other)]
    if one.hit[at] == other.hit[at] and one.evicted[at] == other.evicted[at]:
        facts.append("the slots that they returned differ")
    return f"the implementations differ, first at request {at} (counted from 0): {', '.join(facts)}"


def _run(job: Job, watch: Watcher) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="triradix-replay-") as folder:
        job_path, result_path = Path(folder, "job"), Path(folder, "result")
        job_path.write_bytes(pickle.dumps(job))
        with (
            Path(folder, "errors").open("w+", errors="replace") as errors,
            subprocess.Popen(
                python("triradix.replay.worker", str(job_path), str(result_path)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            ) as process,
        ):
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    if line.strip().isdigit():  # else something printed it at the start
                        watch(job.implementation, int(line))
            except BaseException:
                process.kill()
                raise
            code = process.wait()
            errors.seek(0)
            said = errors.read()
            if code or not result_path.exists():
                raise ReplayError(_last_words(job.implementation, code, said.strip().splitlines()))
            # What it tells under TRIRADIX_LOG, and warnings.
            sys.stderr.write(said)
        measurement: Measurement = pickle.loads(result_path.read_bytes())
        return measurement


def _last_words(name: str, code: int, said: list[str]) -> str:
    """A sentence with the last line of a process that failed; below it what it said just before, if anything."""
    ended = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
    last = said[-1] if said else "it said nothing"
    hint = " (not enough memory?)" if code == -signal.SIGKILL and not said else ""
    return "\n".join([f"the replay of {name} {ended}: {last}{hint}", *(f"  {line}" for line in said[-12:-1])])


@contextmanager
def progress_display(implementations: Sequence[str], total: int) -> Iterator[Watcher]:
    """A bar for each implementation on a terminal, else a plain line every tenth of the way; both on stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _PlainLines(total)
        return
    columns = (TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bars:
        tasks = {name: bars.add_task(name, total=total, start=False) for name in implementations}

        def watch(implementation: str, done: int) -> None:
            bars.start_task(tasks[implementation])
            bars.update(tasks[implementation], completed=done)

        yield watch


class _PlainLines:
    def __init__(self, total: int) -> None:
        self._total = total
        self._tenths: dict[str, int] = {}

    def __call__(self, implementation: str, done: int) -> None:
        tenths = done * 10 // self._total
        if tenths > self._tenths.get(implementation, 0):
            self._tenths[implementation] = tenths
            print(f"{implementation}: {done:,} of {self._total:,} requests", file=sys.stderr, flush=True)
