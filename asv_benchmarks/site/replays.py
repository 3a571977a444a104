"""What ``make replay`` measured: time in the cache per request, over a trace."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from asv_benchmarks.site.parts import Part, copy, links, machine_text, read_json
from triradix.implementations import IMPLEMENTATIONS
from triradix.replay.charts import Axis, Series, line_chart, log_axis
from triradix.replay.table import bytes_text, duration_text, outcome_text

EMPTY = Part("replay", "A trace, replayed", "make replay")


def replay_part(made: Path, site: Path) -> Part:
    report = read_json(made / "replay.json", EMPTY.command)
    if report is None:
        return EMPTY
    trace = report["trace"]
    costs: dict[str, Any] = report["implementations"]
    text = (
        f"{trace['name']}: {trace['requests']:,} requests, {trace['prompt_tokens']:,} prompt tokens. "
        f"{outcome_text(report['outcome'])}."
    )
    files = copy([made / "replay.html", made / "replay.json"], site)
    texts = {"replay.html": "Every curve and figure of this replay", "replay.json": "JSON"}
    body = (
        f"<p>{escape(text)}</p>"
        f'<div class="tiles">{"".join(_tile(name, costs[name]) for name in costs)}</div>'
        f'<div class="figures">{"".join(_charts(report))}</div>' + links([(name, texts[name]) for name in files])
    )
    facts = {
        "measured": report["created"][:10],
        "commit": report.get("commit", "")[:8],
        "machine": machine_text(report["machine"]),
        "command": report["command"],
    }
    return replace(EMPTY, body=body, made=facts)


def _style(name: str) -> str:
    return f"s{IMPLEMENTATIONS.index(name)}"


def _tile(name: str, costs: dict[str, Any]) -> str:
    each = costs["time_in_cache_per_request"]
    return (
        f'<div class="tile"><span class="key {_style(name)}">{escape(name)}</span>'
        f"<strong>{duration_text(each['p50'])}</strong>"
        f"<span>in the cache per request, median; p99 {duration_text(each['p99'])}; "
        f"peak RSS {bytes_text(costs['peak_rss'])}</span></div>"
    )


def _charts(report: dict[str, Any]) -> list[str]:
    curves, costs = report["curves"], report["implementations"]
    ends: list[int] = curves["request"]
    requests = Axis(0, ends[-1], False, lambda value: f"{value:,.0f}")
    charts = []
    for level, title in (("p50", "Time in the cache per request, median"), ("p99", "The slowest hundredth: p99")):
        series = [Series(name, _style(name), ends, costs[name]["curves"][level]) for name in costs]
        times = log_axis([value for each in series for value in each.y if value is not None], duration_text)
        charts.append(line_chart(title, series, requests, times, ("request {x}: ", "{name} {y}")))
    return charts
