"""A program that is looked at: started again for each run, timed by itself, sampled or counted."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiles import sampler
from profiles.folded import short
from profiles.sampler import CannotRecord

COUNTING = Path(__file__).parent / "counting"
SECONDS_TO_START = 20.0
SLOWER = 1.25
"""A counted run that took so many times longer did the same work: then its calls are those of the plain run."""

Function = tuple[str, int, str]
"""Where it is: the file, as folded.short has it, the line where it begins, and its name, since a line may hold more."""


@dataclass(frozen=True)
class Run:
    """What a run said of itself when it ended."""

    seconds: float
    """Without those at the start that are not looked at, and those in which other programs had the processor."""
    processor: float
    """Seconds of processor time, of all threads."""
    ended: bool
    """By itself; else it was stopped when its time was over."""
    calls: dict[Function, int]
    overhead: float
    """Seconds that counting added to a call."""
    others: float = 0.0
    """Seconds of processor time of the processes that it started and waited for."""


@dataclass(frozen=True)
class Program:
    command: Sequence[str]
    limit: int
    """Seconds after which a run is stopped."""
    after: float
    """Seconds that it is left alone before it is sampled."""

    def time(self) -> Run:
        return self._run(counts=False)

    def count(self) -> Run:
        return self._run(counts=True)

    def sample(self, kind: str, rate: int) -> sampler.Samples:
        with tempfile.TemporaryDirectory(prefix="triradix-program-") as folder:
            process, pid = self._start(Path(folder, "run.json"), counts=False)
            try:
                time.sleep(self.after)
                if self.after and process.poll() is not None:
                    raise CannotRecord(f"{self.command[0]} ended within {self.after:g} s: name a shorter --after")
                try:
                    return sampler.sample(pid, kind, rate, self.limit, by_function=True)
                except CannotRecord:
                    if process.poll() is None:
                        raise
                    raise CannotRecord(f"{self.command[0]} ended before py-spy had seen it: let it do more") from None
            finally:
                sampler.stop(process)

    def _run(self, counts: bool) -> Run:
        with tempfile.TemporaryDirectory(prefix="triradix-program-") as folder:
            result = Path(folder, "run.json")
            process, _pid = self._start(result, counts)
            try:
                process.wait(self.limit + self.after)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
            finally:
                sampler.stop(process)
            if ended and process.returncode:
                said = Path(f"{result}.errors").read_text(errors="replace").strip().splitlines()[-1:]
                raise CannotRecord(": ".join([f"{self.command[0]} ended with exit status {process.returncode}", *said]))
            if not result.exists():
                raise CannotRecord(f"{self.command[0]} was killed before it could say how long it ran")
            found = json.loads(result.read_text(encoding="utf-8"))
        seconds = max(found["seconds"] - found["queued"], 0.01 * found["seconds"])
        calls: dict[Function, int] = {}
        for file, line, name, count in found["calls"]:
            function = short(file), line, name
            calls[function] = calls.get(function, 0) + count
        return Run(seconds, found["processor"], ended, calls, found["overhead"], found["others"])

    def _start(self, result: Path, counts: bool) -> tuple[subprocess.Popen[Any], int]:
        """The running program and the pid of its Python, which a script may have started in turn."""
        environment = dict(os.environ)
        path = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = os.pathsep.join([str(COUNTING), *([path] if path else [])])
        environment["TRIRADIX_PROFILE_RESULT"] = str(result)
        environment["TRIRADIX_PROFILE_COUNTS"] = "1" if counts else ""
        environment["TRIRADIX_PROFILE_AFTER"] = str(self.after)
        environment["TRIRADIX_PROFILE_PYTHONPATH"] = path
        with open(f"{result}.errors", "wb") as errors:
            try:
                process = subprocess.Popen(
                    self.command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
                )
            except OSError as error:
                raise CannotRecord(f"{self.command[0]} cannot be started: {error.strerror}") from None
        started = Path(f"{result}.pid")
        deadline = time.monotonic() + SECONDS_TO_START
        while not started.exists() or not started.read_text().endswith("\n"):
            if process.poll() is not None or time.monotonic() > deadline:
                sampler.stop(process)
                raise CannotRecord(
                    f"{self.command[0]} starts no Python that runs its sitecustomize (-I, -E and -S prevent that): "
                    "start it yourself and give its --pid"
                )
            time.sleep(0.01)
        return process, int(started.read_text())


def calls_a_second(plain: Run, counted: Run) -> tuple[dict[Function, float], float]:
    """Of each function in a plain run, and the share of that which is sure: 1 if they are exact.

    Where the counted run did the same work, its calls are the plain run's. A program that runs for a given time does
    less work while it is counted: then the time that the counting itself took is left out, which is an estimate. So
    many as were counted a second there were at least.
    """
    if plain.ended and counted.ended and counted.seconds > SLOWER * plain.seconds:
        return {function: count / plain.seconds for function, count in counted.calls.items()}, 1.0
    total = sum(counted.calls.values())
    took = max(counted.seconds - total * counted.overhead, counted.seconds / 50)
    sure = took / counted.seconds
    return {function: count / took for function, count in counted.calls.items()}, 1.0 if sure > 0.95 else sure
