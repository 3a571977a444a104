"""Something else at every step of plain Python code: what a signal handler, a finalizer or another thread may do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


def at_every_step(of: Callable[..., Any], action: Callable[[], object], run: Callable[[], object]) -> Iterator[int]:
    """``run()`` again and again, with ``action()`` before the first step of the file that ``of`` stands in, then before
    the second, and so on; yields after each run.
    """
    step = 0
    while at_step(step, of, action, run):
        yield step
        step += 1


def at_step(step: int, of: Callable[..., Any], action: Callable[[], object], run: Callable[[], object]) -> bool:
    """The same at that step alone. False if the run was over before it."""
    left, file = step, of.__code__.co_filename

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != file:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == -1:
                action()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return left < 0
