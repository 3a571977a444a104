"""Starts a process for each system, and has them measure each row in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import triradix
from triradix.compare.row import Scale, Work
from triradix.compare.statistics import order
from triradix.compare.systems import FLOOR, System

Watcher = Callable[[str, int, int], None]
"""Is told a row's title, its number and how many there are, before each row."""


@dataclass
class Measured:
    """The rounds of a row: for each system its figures, or why it has none.

    ``failed``: those that have none although they offer what the row measures.
    """

    rounds: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    floor: list[float] = field(default_factory=list)


@dataclass
class Run:
    rows: dict[str, Measured]
    versions: dict[str, str]
    missing: dict[str, str]
    pinned: bool
    load: float = 0.0
    """What other programs kept busy when it began, in cores: the system's load of the last minute."""


@dataclass(frozen=True)
class Peers:
    """Where the peers are: the Python of their environment, and the folder of the unpacked SGLang."""

    python: Path
    sglang: Path


class Worker:
    """The driver's end of one system's process."""

    def __init__(self, system: System, process: subprocess.Popen[bytes], errors: Any) -> None:
        self.system, self._process, self._errors = system, process, errors

    def ask(self, **message: Any) -> dict[str, Any]:
        """Send, and wait for the answer. A process that has gone answers with why."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            return self._gone()
        return self.listen()

    def listen(self) -> dict[str, Any]:
        """What others print before the process takes its output for itself is no answer."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            with suppress(ValueError):
                reply = json.loads(line)
                if isinstance(reply, dict):
                    return reply
        return self._gone()

    def _gone(self) -> dict[str, Any]:
        code = self._process.wait()
        self._errors.seek(0)
        last = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
        return {"missing": ": ".join([f"its process ended with code {code}", *last]), "failed": True}


def run(
    works: Sequence[Work],
    systems: Sequence[System],
    scale: Scale,
    *,
    seed: int = 0,
    peers: Peers | None = None,
    not_installed: str = "not installed",
    watch: Watcher = lambda title, number, total: None,
) -> Run:
    """Measure every work with every system. A system that cannot run is left out, and `Run.missing` says why."""
    core = _core()
    rows = {row.name: Measured() for work in works for row in work.rows}
    result = Run(rows, {}, {}, core is not None, os.getloadavg()[0])
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for system in (*systems, FLOOR):
            if not system.ours and peers is None:
                result.missing[system.name] = not_installed
                continue
            try:
                workers[system.name] = stack.enter_context(_worker(system, scale, core, peers))
            except OSError as error:
                result.missing[system.name] = f"its Python cannot be started: {error.strerror}"
        for name, worker in list(workers.items()):
            hello = worker.listen()
            if "missing" in hello:
                result.missing[name] = hello["missing"]
                del workers[name]
                continue
            result.versions[name] = hello["version"]
            result.pinned = result.pinned and hello["pinned"]
        for number, work in enumerate(works):
            watch(work.rows[0].title, number, len(works))
            _measure(work, workers, scale, seed, result)
    return result


def _measure(work: Work, workers: Mapping[str, Worker], scale: Scale, seed: int, result: Run) -> None:
    rounds = scale.fresh_rounds if work.afresh else min(scale.rounds, work.most_rounds or scale.rounds)
    names = [name for name in workers if name == FLOOR.name or not work.machine]
    groups = [[name] for name in names] if work.alone else [names]
    answers: dict[str, Any] = {}
    for group in groups:
        begun = [name for name in group if _begin(work, workers[name], seed, answers, result)]
        for number in range(rounds):
            for name in order(begun, number):
                reply = workers[name].ask(round=number)
                if "missing" in reply:
                    begun.remove(name)
                    _miss(work, name, reply, result)
                    continue
                _note(work, name, reply["figures"], result)
        for name in begun:
            workers[name].ask(end=True)


def _begin(work: Work, worker: Worker, seed: int, answers: dict[str, Any], result: Run) -> bool:
    """Whether the system is ready for its rounds, and found the same as those before it."""
    name = worker.system.name
    reply = worker.ask(begin=work.name, seed=seed)
    if "missing" in reply:
        _miss(work, name, reply, result)
        return False
    if name == FLOOR.name:
        return True
    first = next(iter(answers), None)
    if first is not None and answers[first] != reply["ready"]:
        worker.ask(end=True)
        why = f"answered {reply['ready']} where {first} answered {answers[first]}"
        _miss(work, name, {"missing": why, "failed": True}, result)
        return False
    answers[name] = reply["ready"]
    return True


def _miss(work: Work, name: str, reply: Mapping[str, Any], result: Run) -> None:
    if name == FLOOR.name:
        return  # a row without a floor
    for row in work.rows:
        measured = result.rows[row.name]
        measured.rounds.pop(name, None)
        measured.missing[name] = reply["missing"]
        if reply.get("failed"):
            measured.failed.add(name)


def _note(work: Work, name: str, figures: Mapping[str, float], result: Run) -> None:
    for row in work.rows:
        measured = result.rows[row.name]
        if row.name not in figures:
            if name != FLOOR.name:
                measured.missing[name] = "has nothing to compare here"
        elif name == FLOOR.name:
            measured.floor.append(figures[row.name])
        else:
            measured.rounds.setdefault(name, []).append(figures[row.name])


def _core() -> int | None:
    """The core that all are pinned to: the last that this process may use. None where there is no pinning."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return max(os.sched_getaffinity(0))


@contextmanager
def _worker(system: System, scale: Scale, core: int | None, peers: Peers | None) -> Iterator[Worker]:
    """A started process, ended on leaving."""
    job = json.dumps({"system": asdict(system), "scale": asdict(scale), "core": core})
    python: str | Path = sys.executable
    environment = dict(os.environ)
    # The peers' own packages come first: from here they get `triradix` alone.
    script = (
        "import sys; sys.path[:] = [*filter(None, sys.path), sys.argv.pop(1)]; "
        "from triradix.compare.worker import main; main(sys.argv[1:])"
    )
    if not system.ours:
        assert peers is not None
        python = peers.python
        environment |= {"SGLANG_FOLDER": str(peers.sglang)}
        environment.pop("PYTHONPATH", None)
    home = str(Path(triradix.__file__).resolve().parent.parent)
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [python, "-c", script, home, job],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
        )
        try:
            yield Worker(system, process, errors)
        except BaseException:
            process.kill()  # nobody waits for its row any more
            raise
        finally:
            assert process.stdin is not None and process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
