"""What a thread waits for, told by the innermost frames of a native stack."""

from __future__ import annotations

import re
from itertools import takewhile

from profiles.folded import Stack, function

RUNNING = "running"
GIL = "the GIL"
LOCK = "a lock"
OUTSIDE = "something outside"

_DEEP = 12
"""Frames from the innermost on that are looked at: between the wait and Python there are never more."""
_KINDS = (
    # CPython waits for the GIL at a condition variable with a time limit; its locks are semaphores.
    (GIL, re.compile(r"^(take_gil|drop_gil|pthread_cond_(timedwait|clockwait|wait))")),
    # The Cython tree has no lock to sleep at: it naps until it may go on.
    (
        LOCK,
        re.compile(
            r"PyThread_acquire_lock|^sem_|futex|_contended|pthread_(mutex_lock|rwlock)|\bpark\b|^exclusive_nap$"
        ),
    ),
    (
        OUTSIDE,
        re.compile(
            r"^_*(libc_)?(clock_nanosleep|nanosleep|usleep|p?poll|p?select|epoll_p?wait|read|pread|readv|recv|recvfrom"
            r"|recvmsg|write|writev|send|sendto|sendmsg|accept4?|connect|wait4|waitpid|waitid|fsync|fdatasync|open"
            r"|openat|flock|sigwait|sigtimedwait)(64|_nocancel|@.*)?$"
        ),
    ),
)


def state(stack: Stack) -> str:
    """`RUNNING`, or what the thread of this stack waits for. A stack without native frames always runs."""
    native = [function(frame) for frame in takewhile(lambda frame: not is_python(frame), stack[: -_DEEP - 1 : -1])]
    return next((kind for kind, pattern in _KINDS if any(map(pattern.search, native))), RUNNING)


def is_python(frame: str) -> bool:
    return re.search(r"\.py(:\d+)?\)$", frame) is not None or frame.startswith("<")
