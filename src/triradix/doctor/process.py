"""The process that examines an implementation: started, listened to, and ended with all that it started."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from triradix.processes import python

KEPT = 2**20
"""Of what is written to a pipe, so many of the last bytes."""

_TICK_S = 0.02


@dataclass(frozen=True)
class Ended:
    """How it ended: ``code`` as subprocess has it, None where it hung; what it told; what it wrote to stderr."""

    code: int | None
    told: list[dict[str, Any]]
    complained: str


def run(name: str, seconds: float, patience: float) -> Ended:
    """Examine ``name`` in a process of its own. OSError if none can be started."""
    process = subprocess.Popen(
        python("triradix.doctor.worker", name, str(seconds), str(os.getpid())),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    with process.stdout, process.stderr:
        told, complained = _Pipe(process.stdout), _Pipe(process.stderr)
        try:
            code = _wait(process, [told, complained], patience)
        finally:
            # Its whole group: what it started has no business any more.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for pipe in (told, complained):
            pipe.drain()
    return Ended(code, _told(told.text()), complained.text())


class _Pipe:
    """The end that is read, without ever waiting."""

    def __init__(self, end: IO[bytes]) -> None:
        self.number, self.open, self._read = end.fileno(), True, b""
        os.set_blocking(self.number, False)

    def read(self) -> bool:
        """Whether there was anything."""
        try:
            new = os.read(self.number, 2**16)
        except BlockingIOError:
            return False
        self.open = bool(new)
        self._read = (self._read + new)[-KEPT:]
        return self.open

    def drain(self) -> None:
        """What is left, and no more than a pipe holds: somebody may be writing to it still."""
        for _ in range(64):
            if not self.read():
                break

    def text(self) -> str:
        return self._read.decode(errors="replace")


def _wait(process: subprocess.Popen[bytes], pipes: list[_Pipe], patience: float) -> int | None:
    """Until it ends, not until its pipes do: what it started may hold them open."""
    until = time.monotonic() + patience
    while (code := process.poll()) is None and time.monotonic() < until:
        waiting = select.poll()
        for pipe in pipes:
            if pipe.open:
                waiting.register(pipe.number, select.POLLIN)
        waiting.poll(_TICK_S * 1000)
        for pipe in pipes:
            if pipe.open:
                pipe.read()
    return code


def _told(text: str) -> list[dict[str, Any]]:
    """The lines that are of the worker. What others print before it begins, and half a line, is none."""
    found = []
    for line in text.splitlines():
        with suppress(ValueError):
            message = json.loads(line)
            if isinstance(message, dict) and "part" in message:
                found.append(message)
    return found
