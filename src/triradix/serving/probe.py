"""What the calls of the cache take inside SGLang's scheduler, and what else a step of it takes.

A plugin of SGLang, switched on by the environment variable `PROBE`, the file that it writes to: one JSON object for
each step in which there was work, in ns of the scheduler thread's own processor time, so that what else runs on the
machine is not in it (``wall`` is what the step took by the clock). Nothing is written while there is work; reading the
clock costs what `Probe.clock` says, and is part of each call.

    {"busy": …, "wall": …, "forward": …, "extend": [requests, tokens, pairs], "decode": [requests, tokens before],
     "calls": [["match_prefix", …], …]}

``forward`` is the part of ``busy`` in the model. ``pairs``: of a new token and one before it, which is attention's
work. A flush of the cache is a line ``{"reset": true}``. Calls that a cache makes of itself are part of the outer one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from inspect import getattr_static
from types import FunctionType
from typing import Any

PROBE = "TRIRADIX_PROBE"
_MOST = 20_000
"""Steps that are kept at most before they are written, though there is work."""
_CONSTANT = ("supports_", "is_", "pretty_print", "available_and_evictable_str", "init_metrics_collector")
"""Beginnings of names that are not timed: what does nothing, and what is for people."""


def register() -> None:
    path = os.environ.get(PROBE)
    if not path:
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    from triradix.serving.attention import compute_only_what_is_new

    compute_only_what_is_new()
    probe = Probe(path)
    scheduler = "sglang.srt.managers.scheduler.Scheduler"
    for target, hook in (
        ("sglang.srt.mem_cache.kv_cache_builder.create_tree_cache", probe.around_making),
        (f"{scheduler}.get_next_batch_to_run", probe.around_planning),
        (f"{scheduler}.run_batch", probe.around_model),
    ):
        HookRegistry.register(target, hook, HookType.AROUND)


class Probe:
    def __init__(self, path: str) -> None:
        self._path = path
        self._lines: list[dict[str, Any]] = []
        self._calls: list[tuple[str, int]] = []
        self._depth = 0
        self._busy = self._follows = False
        self._began = self._began_wall = 0
        self._model: dict[str, Any] = {}

    @staticmethod
    def clock() -> int:
        """ns that one timed call has on its account though it does nothing."""
        readings = sorted(-time.thread_time_ns() + time.thread_time_ns() for _ in range(2001))
        return readings[1000]

    def around_making(self, make: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        cache = make(*arguments, **options)
        for name in dir(cache):
            if not name.startswith(("_", *_CONSTANT)) and isinstance(getattr_static(cache, name), FunctionType):
                setattr(cache, name, self._timed(name, getattr(cache, name)))
        self._lines.append({"cache": type(cache).__name__, "clock": self.clock()})
        return cache

    def _timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            if self._depth:
                return call(*arguments, **options)
            self._depth = 1
            began = time.thread_time_ns()
            try:
                return call(*arguments, **options)
            finally:
                self._calls.append((name, time.thread_time_ns() - began))
                self._depth = 0

        return timed

    def around_planning(self, plan: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """A step goes from one plan to the next: planning, the model, its results, and what came in meanwhile."""
        self._end_step()
        self._began, self._began_wall = time.thread_time_ns(), time.perf_counter_ns()
        planned = plan(*arguments, **options)
        batch = planned.batch_to_run is not None
        # With overlap, the results of a batch are looked at in the step that follows it.
        self._busy, self._follows = batch or self._follows, batch
        if not self._busy and self._lines:
            self._write()
        return planned

    def around_model(self, run: Callable[..., Any], scheduler: Any, batch: Any, *arguments: Any, **options: Any) -> Any:
        if batch.forward_mode.is_extend():
            new, before = batch.extend_lens, batch.prefix_lens
            pairs = sum(n * b + n * n // 2 for n, b in zip(new, before, strict=True))
            self._model["extend"] = [len(new), sum(new), pairs]
        else:
            self._model["decode"] = [
                len(batch.reqs),
                sum(len(r.origin_input_ids) + len(r.output_ids) for r in batch.reqs),
            ]
        inside, began = sum(ns for _, ns in self._calls), time.thread_time_ns()
        result = run(scheduler, batch, *arguments, **options)
        spent = time.thread_time_ns() - began
        self._model["forward"] = spent - (sum(ns for _, ns in self._calls) - inside)
        return result

    def _end_step(self) -> None:
        if self._busy:
            line = {"busy": time.thread_time_ns() - self._began, "wall": time.perf_counter_ns() - self._began_wall}
            self._lines.append({**line, **self._model, "calls": self._calls})
        elif any(name == "reset" for name, _ in self._calls):
            self._lines.append({"reset": True})
        # What an idle scheduler asks, over and over, is left out.
        self._calls, self._model = [], {}
        if len(self._lines) > _MOST:
            self._write()

    def _write(self) -> None:
        with open(self._path, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in self._lines)
        self._lines = []
