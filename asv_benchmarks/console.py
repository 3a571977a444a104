"""How the commands of this folder and of ``profiles`` end, whatever becomes of their output: never with a traceback."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress


def ending(name: str, run: Callable[[], int]) -> int:
    """What ``run`` returns, the exit code of the command ``name``.

    130 after Ctrl-C; 141 if the reader of stdout has gone, 1 if what is printed cannot be written.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What an encoding has no letter for shall not be the end.
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            return run()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"{name}: stopped", file=sys.stderr)
        return 130
    except OSError as error:
        # The commands themselves say what is the matter with a file.
        if error.filename is not None:
            raise
        _give_up_stdout()
        if isinstance(error, BrokenPipeError):
            return 141
        print(f"{name}: what is printed cannot be written: {error.strerror}", file=sys.stderr)
        return 1


def _give_up_stdout() -> None:
    """Else Python tries once more at its end, and complains."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def open_missing_streams() -> None:
    """Else the first files that this process opens take the place of the streams that it was started without."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
