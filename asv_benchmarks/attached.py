"""Run a command that ends with this process, however that ends, and with it all that the command has started.

    python attached.py FD COMMAND …      the keeper, between this process and the command

The keeper has a session of its own, so that Ctrl-C reaches this process alone. It waits for the command, and for FD, a
pipe whose other end this process holds: when that closes, because of a signal or because this process is gone, it
interrupts the command, as Ctrl-C would, and kills what is left of it a little later. asv starts its workers in process
groups of their own, so they are found as descendants of the keeper; on Linux also those whose parent has gone are.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

GRACE = 10.0
"""Seconds that an interrupted command has to put its own affairs in order."""

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_CHILD_SUBREAPER = 36
_STDOUT = 1


class Stopped(Exception):
    """A signal came while the command ran; ``number`` says which."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


def run(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: str = "", keep_open: Sequence[int] = ()
) -> int:
    """The exit code of the command. Files of ``keep_open`` stay open until all of it is gone.

    Stopped if a signal comes first, OSError if what it prints cannot be written: then nothing of the command runs any
    more. (What goes to a terminal it writes there itself.)
    """
    life, ours = os.pipe()
    copied = not os.isatty(_STDOUT)
    # Isolated: neither the folder of this script nor PYTHONPATH says what `import` finds.
    keeper = [sys.executable, "-I", __file__, str(life), *command]
    files = (life, *keep_open)
    with (
        _signals_raised(),
        subprocess.Popen(
            keeper,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if copied else None,
            pass_fds=files,
            start_new_session=True,
        ) as process,
    ):
        os.close(life)
        threading.Thread(target=_feed, args=(process, stdin), daemon=True).start()
        try:
            _copy(process, _write)
        finally:
            os.close(ours)  # and on leaving the keeper is waited for
            # To its end, so that nothing of the command complains of a reader that has gone.
            _copy(process, len)
    return process.returncode


def _feed(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(text.encode())


def _copy(process: subprocess.Popen[bytes], take: Callable[[bytes], object]) -> None:
    """Hand on what the keeper and all below it print, until the keeper has ended."""
    while process.stdout is not None:
        # Not until the end of the pipe: what the keeper does not find, off Linux, may hold it open.
        ended = process.poll() is not None
        if select.select([process.stdout], [], [], 0 if ended else 0.5)[0]:
            if not (piece := os.read(process.stdout.fileno(), 1 << 16)):
                break
            take(piece)
        elif ended:
            break
    process.wait()


def _write(piece: bytes) -> None:
    while piece:
        piece = piece[os.write(_STDOUT, piece) :]


@contextmanager
def _signals_raised() -> Iterator[None]:
    """Signals that would end this process raise Stopped, but for those that whoever started it has it ignore."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def keep(life: int, command: Sequence[str]) -> int:
    """The keeper's own life: the exit code of the command, as a shell gives it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in _ENDING:
        # It is the pipe that counts. Not SIG_IGN: the command would inherit that.
        signal.signal(number, lambda *_: None)
    child = subprocess.Popen(command)

    def end_with_the_pipe() -> None:
        os.read(life, 1)
        child.send_signal(signal.SIGINT)
        time.sleep(GRACE)
        _kill_descendants()

    threading.Thread(target=end_with_the_pipe, daemon=True).start()
    code = child.wait()
    _kill_descendants()
    return code if code >= 0 else 128 - code


def _kill_descendants() -> None:
    import psutil  # type: ignore[import-untyped]  # needed here alone, so that the rest can say what is missing

    def runs(process: psutil.Process) -> bool:
        try:
            return bool(process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    # Again until there are none: one may just have started another.
    while left := [each for each in psutil.Process().children(recursive=True) if runs(each)]:
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=1)


if __name__ == "__main__":
    sys.exit(keep(int(sys.argv[1]), sys.argv[2:]))
