"""What the serving experiment runs, and in which order."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from triradix.serving.engine import BACKENDS

SHARED, TRACE = "shared prefixes", "conversations"
CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Settings:
    """All that makes two runs comparable. ``requests`` of each run; ``pool_tokens`` is the engine's KV pool."""

    caches: tuple[str, ...] = tuple(BACKENDS)
    concurrencies: tuple[int, ...] = CONCURRENCIES
    repeats: int = 3
    requests: int = 128
    pool_tokens: int = 65_536
    page_size: int = 1
    schedule_policy: str = "fcfs"
    trace: str | None = None
    seed: int = 0

    @classmethod
    def quick(cls) -> Settings:
        return cls(concurrencies=(4, 32), repeats=1, requests=96)

    @property
    def workloads(self) -> tuple[str, ...]:
        return (SHARED, TRACE) if self.trace else (SHARED,)

    @classmethod
    def read(cls, found: dict[str, Any]) -> Settings:
        """From JSON, which knows no tuples."""
        plain: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in found.items()
        }
        return cls(**plain)

    @property
    def command(self) -> str:
        """What runs the same again."""
        words = [
            f"--{name} {shlex.quote(str(value))}"
            for name, value in (
                ("caches", ",".join(self.caches)),
                ("concurrencies", ",".join(map(str, self.concurrencies))),
                ("repeats", self.repeats),
                ("requests", self.requests),
                ("pool", self.pool_tokens),
                ("page-size", self.page_size),
                ("schedule-policy", self.schedule_policy),
                ("seed", self.seed),
                ("trace", self.trace),
            )
            if value is not None
        ]
        return f'make serving ARGS="{" ".join(words)}"'

    def written(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Run:
    """One use of bench_serving against an engine that has been started for a cache, in a repeat."""

    repeat: int
    cache: str
    workload: str
    concurrency: int


def sessions(settings: Settings) -> Iterator[list[Run]]:
    """The runs of one engine after another. Each repeat has an engine of each cache; all orders are drawn anew.

    So what changes on the machine in the meantime falls on all caches alike, and no run always follows the same other.
    """
    rng = random.Random(settings.seed)
    for repeat in range(settings.repeats):
        for cache in rng.sample(settings.caches, len(settings.caches)):
            points = [(workload, c) for workload in settings.workloads for c in settings.concurrencies]
            yield [Run(repeat, cache, *point) for point in rng.sample(points, len(points))]


def left(settings: Settings, done: Sequence[Run], at_most: int | None) -> list[list[Run]]:
    """What is still to be run, for at most so many engines."""
    known = set(done)
    waiting = [[run for run in session if run not in known] for session in sessions(settings)]
    return [session for session in waiting if session][:at_most]


def engine_flags(settings: Settings) -> dict[str, Any]:
    """Options of the engine beside those that every engine on a CPU has."""
    return {
        "pool_tokens": settings.pool_tokens,
        "page_size": settings.page_size,
        "schedule_policy": settings.schedule_policy,
        "max_running_requests": 64,
        "chunked_prefill_size": 2048,
        "enable_cache_report": True,
    }


def bench_flags(settings: Settings, run: Run, rows: str) -> list[str]:
    """bench_serving's flags but for the port. ``rows``: the file of the trace's requests."""
    if run.workload == SHARED:
        groups = max(1, settings.requests // 8)
        dataset = {
            "--dataset-name": "generated-shared-prefix",
            "--gsp-num-groups": groups,
            "--gsp-prompts-per-group": settings.requests // groups,
            "--gsp-system-prompt-len": 1024,
            "--gsp-question-len": 64,
            "--gsp-output-len": 8,
        }
    else:
        dataset = {"--dataset-name": "custom", "--dataset-path": rows}
    flags = {
        "--backend": "sglang",
        "--host": "127.0.0.1",
        **dataset,
        "--num-prompts": settings.requests,
        "--max-concurrency": run.concurrency,
        "--seed": settings.seed + 1,
    }
    switches = ["--flush-cache", "--cache-report", "--disable-tqdm"]
    if run.workload == SHARED:
        switches.append("--tokenize-prompt")
    return [*(str(each) for pair in flags.items() for each in pair), *switches]


def runs_of(lines: Sequence[dict[str, Any]]) -> list[Run]:
    """What lines of results are of."""
    return [Run(line["repeat"], line["cache"], line["workload"], line["concurrency"]) for line in lines]
