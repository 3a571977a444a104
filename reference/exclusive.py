"""One operation at a time, also across forks, finalizers and signal handlers.

One lock serves all caches of the process: plain Python runs one thread at a time anyway, and so a fork can wait for it
in one step. The child then inherits every cache between two operations, with the lock free.

An operation is made of Python steps, and between two of them Python may run code of others in the same thread, which
may use the cache:

* finalizers of garbage: the collector is off while an operation runs, so they come before or after it (a thread that
  turns the collector off at just that time finds it on again);
* signal handlers: no thread can hold them off in plain Python, and the cache is not whole at that instant. They get a
  RuntimeError. (A handler that only raises, as that of Ctrl-C does, is what `Undo` is for.)

When the interpreter ends, Python ends the other threads wherever they are, also with the lock taken. Finalizers that
come after that find a new lock, and what an operation had begun is put back first.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from gc import disable, enable, isenabled
from sys import is_finalizing
from typing import Any, TypeVar

from triradix.reference.undo import Undo

_R = TypeVar("_R")

_lock = threading.RLock()
_running = False
_is_last = False

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def run_alone(undo: Undo, operation: Callable[..., _R], *arguments: Any) -> _R:
    """Run ``operation``; if anything raises before it returned, everything it kept in ``undo`` is put back.

    A roll back that is itself interrupted goes on at the next operation. What cannot be helped: an interrupt that comes
    when the operation is complete, on the way out, finds it done.
    """
    global _running
    if is_finalizing():
        _become_last()
    # `with`, not `acquire` and `release`, which would be faster: an interrupt right after them would leave it locked.
    with _lock:
        if _running:
            raise RuntimeError(
                "a prefix cache was used in the middle of one of its own operations (by a signal handler?)"
            )
        collecting = isenabled()
        try:
            disable()
            _running = True
            if undo:
                undo.roll_back()
            result = operation(*arguments)
            undo.clear()
            return result
        except BaseException:
            undo.roll_back()
            raise
        finally:
            _running = False
            if collecting:
                enable()


def _become_last() -> None:
    """No other thread will run Python code any more: whoever was in an operation stays there."""
    global _lock, _running, _is_last
    if not _is_last:
        _lock, _running, _is_last = threading.RLock(), False, True
