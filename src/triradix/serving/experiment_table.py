"""The serving experiment on a terminal, and the sentences that its page has too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from triradix.replay.table import duration_text
from triradix.serving.engine import BACKENDS
from triradix.serving.summary import END_TO_END, LEAST_REPEATS, PEER, WITHOUT

Report = dict[str, Any]
_LEAST_PART = 0.02
"""Of a cache's time: calls that take less in every cache are left out of the table."""
_NAMES = {"requests/s": "Throughput", "TTFT p50 ms": "TTFT p50", "TTFT p99 ms": "TTFT p99"}


def print_tables(report: Report, console: Console) -> None:
    for workload in workloads(report):
        table = Table("at a time")
        table.add_column("cache", no_wrap=True)
        for name in ("requests/s", "TTFT p50", "TTFT p99", "in the cache", "of the scheduler", "hits"):
            table.add_column(name, justify="right")
        before = None
        for point, cells in point_rows(report, workload):
            if before not in (None, point["concurrency"]):
                table.add_section()
            before = point["concurrency"]
            table.add_row(f"{before}", point["cache"], *cells)
        console.print(f"[bold]{workload}[/bold]", highlight=False)
        console.print(table)
    for sentence in sentences(report):
        console.print(sentence, highlight=False)


def workloads(report: Report) -> list[str]:
    return list(dict.fromkeys(point["workload"] for point in report["points"]))


def caches(report: Report) -> list[str]:
    """In the order of the engine's list."""
    found = {point["cache"] for point in report["points"]}
    return [name for name in BACKENDS if name in found]


def point_rows(report: Report, workload: str) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """A point and its cells: each a median, and the least and the most if there is more than one repeat."""
    order = caches(report)
    points = [point for point in report["points"] if point["workload"] == workload]
    for point in sorted(points, key=lambda point: (point["concurrency"], order.index(point["cache"]))):
        yield (
            point,
            [
                _cell(point, "requests/s", lambda value: f"{value:.1f}"),
                _cell(point, "TTFT p50 ms", milliseconds),
                _cell(point, "TTFT p99 ms", milliseconds),
                _cell(point, "cache µs per request", duration_text),
                _cell(point, "share", percent),
                f"{point['hit rate']['median']:.0%}",
            ],
        )


def milliseconds(value: float) -> str:
    return duration_text(value * 1000)


def percent(share: float) -> str:
    return f"{share:.1%}"


def _cell(point: dict[str, Any], name: str, text: Any) -> str:
    found = point[name]
    if point["repeats"] == 1:
        return str(text(found["median"]))
    return f"{text(found['median'])} ({text(found['least'])} – {text(found['most'])})"


def call_rows(report: Report, workload: str) -> Iterator[tuple[str, list[dict[str, Any] | None]]]:
    """A call, and what it took in each cache (None where it is never called), those with most of the time first."""
    found = {(line["call"], line["cache"]): line for line in report["calls"] if line["workload"] == workload}
    parts: dict[str, float] = {}
    for (call, _), line in found.items():
        parts[call] = max(parts.get(call, 0.0), line["part"])
    for call in sorted(parts, key=lambda call: -parts[call]):
        if parts[call] >= _LEAST_PART:
            yield call, [found.get((call, cache)) for cache in caches(report)]


def sentences(report: Report) -> Iterator[str]:
    """What the figures from end to end say, and what they do not."""
    repeats = min((point["repeats"] for point in report["points"]), default=0)
    if repeats < LEAST_REPEATS:
        yield (
            f"End to end: {repeats} repeat{'s' if repeats > 1 else ''} cannot tell a difference from the machine's "
            f"noise, so none is claimed (it takes {LEAST_REPEATS})."
        )
        return
    for workload in workloads(report):
        verdicts = [each for each in report["verdicts"] if each["workload"] == workload]
        yield f"{workload.capitalize()}, with a cache against none: {_said(verdicts, WITHOUT)}."
        yield f"{workload.capitalize()}, one cache against another (SGLang's Rust tree): {_said(verdicts, PEER)}."


def _said(verdicts: Sequence[dict[str, Any]], against: str) -> str:
    parts = []
    for figure in END_TO_END:
        mine = [each for each in verdicts if each["figure"] == figure and each["against"] == against]
        apart = [(each["cache"], at) for each in mine for at in each["apart"]]
        compared = sum(each["points"] for each in mine)
        if not apart:
            parts.append(f"{_NAMES[figure]} not apart at any of {compared} points")
            continue
        ratios = [at["ratio"] for _, at in apart]
        names = sorted({cache for cache, _ in apart})
        who = "" if against == WITHOUT else f" ({', '.join(names)})"
        parts.append(
            f"{_NAMES[figure]} apart at {len(apart)} of {compared} points{who}, "
            f"{min(ratios):.2f} to {max(ratios):.2f} times"
        )
    return "; ".join(parts)
