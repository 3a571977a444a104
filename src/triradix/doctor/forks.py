"""Whether parent and child both go on after a fork, as data loaders and servers with several workers need it."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings

from triradix.doctor.self_test import Create, Fault
from triradix.processes import end_with_parent, signal_name

FORKS = 3
PATIENCE_S = 5.0


def fork_test(create: Create) -> None:
    """Fork while a batch runs in another thread; `Fault` if either process fails or hangs."""
    cache = create()
    keys = [[i, *range(60)] for i in range(200)]
    for i, key in enumerate(keys):
        cache.insert(key, list(range(61 * i, 61 * i + 61)))
    done = threading.Event()

    def look_up() -> None:
        while not done.is_set():
            cache.match_prefix_many(keys)

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    try:
        for _ in range(FORKS):
            with warnings.catch_warnings():
                # Python warns of what is tried here.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                end_with_parent()
                os._exit(_in_child(cache, keys))
            _wait(child)
            cache.insert(keys[0] + [1], list(range(62)))
            cache.check()
    finally:
        done.set()
        thread.join(PATIENCE_S)


def _in_child(cache: object, keys: list[list[int]]) -> int:
    try:
        assert cache.match_prefix(keys[7]).length == len(keys[7])  # type: ignore[attr-defined]
        cache.insert([5, 5], [1, 2])  # type: ignore[attr-defined]
        cache.evict(10)  # type: ignore[attr-defined]
        cache.check()  # type: ignore[attr-defined]
        return 0
    except BaseException:
        return 1


def _wait(child: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise Fault(f"the child of a fork hung for {PATIENCE_S:g} s")
        time.sleep(0.001)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        raise Fault(f"the child of a fork was killed by {signal_name(-code)}")
    if code:
        raise Fault("the child of a fork could not use its copy of the cache")
