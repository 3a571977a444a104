"""Processes that this package starts for itself: what they find, how they end, and what is said of that."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_PR_SET_PDEATHSIG = 1


def python(module: str, *arguments: str) -> list[str]:
    """A command that calls ``main`` of ``module`` with the arguments, in a Python that finds what this one finds.

    (``python -m`` would look into the current folder first.)
    """
    flags = sys.flags
    unlike = {"-E": flags.ignore_environment, "-s": flags.no_user_site, "-S": flags.no_site}
    path = [entry for entry in sys.path if isinstance(entry, str)]
    script = f"import sys; sys.path[:] = {path!a}; from {module} import main; main(sys.argv[1:])"
    return [sys.executable, *(flag for flag, given in unlike.items() if given), "-c", script, *arguments]


def end_with_parent() -> None:
    """From now on this process ends when the one that started it does, however that ends. Linux only: else nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@contextmanager
def orderly_end() -> Iterator[None]:
    """For a command: SIGTERM and SIGHUP become SystemExit, so that what it has started is ended too.

    Where whoever started it ignores SIGCHLD, it does not: else nobody would learn how a process ended.
    """
    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        with suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    ends = []
    if threading.current_thread() is threading.main_thread():
        ends = [end for end in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(end) is signal.SIG_DFL]
    for end in ends:
        signal.signal(end, leave)
    try:
        yield
    finally:
        for end in ends:
            signal.signal(end, signal.SIG_DFL)


def signal_name(number: int) -> str:
    """``SIGSEGV``, or ``signal 35`` for one that has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
