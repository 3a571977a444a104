"""One system's process: pinned to a core, imports once, and forks for each row, so that each begins from a clean heap.

It is commanded over its standard input and answers on its standard output, one JSON object a line:

    {"begin": row, "seed": n}  →  {"ready": what the system answered} or {"missing": a sentence}
    {"round": n}               →  {"figures": {row: number}}
    {"end": true}              →  {"ended": true}

Python's garbage collector is on, as a user has it; what the imports made is frozen out of it, so that no system pays
for the size of the packages around it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from typing import Any, BinaryIO

import numpy as np

from triradix.compare.adapter import Adapter, CannotDo
from triradix.compare.forks import in_fork
from triradix.compare.machine import FloorsOf, Machine
from triradix.compare.row import Scale, Work
from triradix.compare.rows import make_works
from triradix.compare.systems import System
from triradix.processes import end_with_parent

Reply = dict[str, Any]


class _Channel:
    def __init__(self) -> None:
        # What a library prints must not look like an answer.
        self._out: BinaryIO = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._out.write(b"\n")  # after what somebody may have printed before

    def receive(self) -> Reply | None:
        """Byte by byte: nothing may stay in a buffer that a fork would double."""
        line = bytearray()
        while not line.endswith(b"\n"):
            byte = os.read(0, 1)
            if not byte:
                return None
            line += byte
        message: Reply = json.loads(line)
        return message

    def send(self, **message: Any) -> None:
        self._out.write(json.dumps(message).encode() + b"\n")
        self._out.flush()


def main(arguments: list[str]) -> None:
    end_with_parent()
    job = json.loads(arguments[0])
    system, scale = System(**job["system"]), Scale(**job["scale"])
    channel = _Channel()
    pinned = _pin(job["core"])
    try:
        adapter = system.load()
        adapter.prepare()
        adapter(16)  # what can only fail when a cache is made fails here
    except Exception as error:
        channel.send(missing=_sentence(error))
        return
    works = {work.name: work for work in make_works(scale)}
    gc.collect()
    gc.freeze()
    channel.send(version=adapter.version, pinned=pinned)
    while (command := channel.receive()) is not None:
        child = os.fork()
        if child == 0:
            code = 1
            end_with_parent()
            try:
                _measure(channel, adapter, works[command["begin"]], scale, command["seed"])
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if status:
            code = os.waitstatus_to_exitcode(status)
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            channel.send(missing=f"its process ended with {how}", failed=True)


def _measure(channel: _Channel, adapter: type[Adapter], work: Work, scale: Scale, seed: int) -> None:
    """Serve one row: its beginning, its rounds, its end."""
    try:
        if issubclass(adapter, Machine) and not work.machine:
            work = FloorsOf(work)
        if work.every_core:
            _unpin()
        work.setup(adapter, scale, np.random.default_rng(seed))
        channel.send(ready=work.answer())
    except Exception as error:
        channel.send(missing=_sentence(error), failed=not isinstance(error, CannotDo))
        return
    while (command := channel.receive()) is not None and "end" not in command:
        try:
            channel.send(figures=in_fork(work.round) if work.afresh else work.round())
        except Exception as error:
            channel.send(missing=_sentence(error), failed=not isinstance(error, CannotDo))
            return
    channel.send(ended=True)


def _pin(core: int | None) -> bool:
    if core is None or not hasattr(os, "sched_setaffinity"):
        return False
    try:
        os.sched_setaffinity(0, {core})
    except OSError:
        return False
    return True


def _unpin() -> None:
    """Let this process use every core that it may."""
    if not hasattr(os, "sched_setaffinity"):
        raise CannotDo("cannot choose its cores on this system")
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    if len(os.sched_getaffinity(0)) < 2:
        raise CannotDo("needs two cores")


def _sentence(error: Exception) -> str:
    if isinstance(error, CannotDo):
        return str(error)
    traceback.print_exc()
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(sys.argv[1:])
