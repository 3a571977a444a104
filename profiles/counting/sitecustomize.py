"""Run by Python at the start of a program that `profiles candidates` looks at: times it, and counts its calls if asked.

It stands in a folder of its own that is put before PYTHONPATH; the environment says what to do. It needs the standard
library alone, and works with any Python from 3.8 on. Processes that the program starts are left alone.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import sys
import threading
import time
from itertools import count
from types import CodeType, FrameType

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_TURNS = 20_000


class _Counter:
    """Calls of each code object. A count is one step of an iterator, which no other thread can interrupt."""

    def __init__(self) -> None:
        self.counts: dict[int, tuple[count[int], CodeType]] = {}

    def called(self, code: CodeType) -> None:
        try:
            next(self.counts[id(code)][0])
        except KeyError:
            # The code is kept, so that its id stays its own. Two threads may both come here: one call is then lost.
            self.counts[id(code)] = (count(2), code)

    def start(self) -> None:
        if sys.version_info >= (3, 12):
            monitoring, called = sys.monitoring, self.called
            monitoring.use_tool_id(monitoring.PROFILER_ID, "triradix")
            # A generator is called again for each of its items, as `sys.setprofile` has it.
            begins = (monitoring.events.PY_START, monitoring.events.PY_RESUME)
            for event in begins:
                monitoring.register_callback(monitoring.PROFILER_ID, event, lambda code, _offset: called(code))
            monitoring.set_events(monitoring.PROFILER_ID, begins[0] | begins[1])
        else:
            called = self.called

            def profile(frame: FrameType, event: str, _argument: object) -> None:
                if event == "call":
                    called(frame.f_code)

            threading.setprofile(profile)
            sys.setprofile(profile)

    def stop(self) -> None:
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(sys.monitoring.PROFILER_ID, 0)
            sys.monitoring.free_tool_id(sys.monitoring.PROFILER_ID)
        else:
            threading.setprofile(None)
            sys.setprofile(None)

    def so_far(self) -> dict[int, int]:
        """The calls of each code object, by its id; nothing is disturbed by looking."""
        return {at: int(repr(counted)[len("count(") : -1]) - 1 for at, (counted, _code) in list(self.counts.items())}

    def since(self, before: dict[int, int], folder: str) -> list[tuple[str, int, str, int]]:
        """File, first line, name, calls."""
        return [
            (os.path.join(folder, code.co_filename), code.co_firstlineno, code.co_name, calls - before.get(at, 0))
            for at, calls in self.so_far().items()
            for code in [self.counts[at][1]]
        ]


def _overhead() -> float:
    """Seconds that counting adds to a call, measured on an empty function, whatever else the processors do."""

    def empty() -> None:
        pass

    def turns() -> float:
        began = time.thread_time()
        for _ in range(_TURNS):
            empty()
        return (time.thread_time() - began) / _TURNS

    plain = min(turns() for _ in range(3))
    counter = _Counter()
    counter.start()
    counted = min(turns() for _ in range(3))
    counter.stop()
    return counted - plain


def _queued() -> float:
    """Seconds that the main thread was ready to run and had no processor, where the system counts them."""
    try:
        with open("/proc/self/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0.0


def _clocks() -> dict[str, float]:
    times = os.times()
    return {
        "seconds": time.perf_counter(),
        "processor": time.process_time(),
        "queued": _queued(),
        "others": times.children_user + times.children_system,
    }


def _begin(result: str, counts: bool, after: float) -> None:
    """Note what is done from now on, or from so many seconds after now, until the program ends."""
    counter = _Counter()
    folder = os.getcwd()
    before, counted = [_clocks()], [counter.so_far()]

    def begin_anew() -> None:
        before[0], counted[0] = _clocks(), counter.so_far()

    def end() -> None:
        if counts:
            counter.stop()
        now = _clocks()
        passed = {name: now[name] - before[0][name] for name in now}
        facts = {**passed, "calls": counter.since(counted[0], folder), "overhead": _overhead() if counts else 0.0}
        with open(result + ".partial", "w") as file:
            json.dump(facts, file)
        os.replace(result + ".partial", result)

    atexit.register(end)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell has it ignored by what it runs in the background, but it is how a run is ended.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(result + ".pid", "w") as file:
        file.write(f"{os.getpid()}\n")
    if after:
        timer = threading.Timer(after, begin_anew)
        timer.daemon = True
        timer.start()
    if counts:
        counter.start()


def _others() -> None:
    """Run the sitecustomize that this one stands before, if there is one."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _FOLDER]
    mine = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = mine


_result = os.environ.pop("TRIRADIX_PROFILE_RESULT", None)
_counts = os.environ.pop("TRIRADIX_PROFILE_COUNTS", "") == "1"
_after = float(os.environ.pop("TRIRADIX_PROFILE_AFTER", "0"))
_path = os.environ.pop("TRIRADIX_PROFILE_PYTHONPATH", None)
if _result:
    if _path:
        os.environ["PYTHONPATH"] = _path
    else:
        os.environ.pop("PYTHONPATH", None)
    _others()
    _begin(_result, _counts, _after)
