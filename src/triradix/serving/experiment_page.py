"""The serving experiment's page: self-contained; style and script are those of the replay's page."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from triradix import pages
from triradix.replay.charts import Axis, Series, line_chart, log_axis
from triradix.replay.table import duration_text
from triradix.serving.experiment_table import (
    caches,
    call_rows,
    milliseconds,
    percent,
    point_rows,
    sentences,
    workloads,
)
from triradix.serving.plan import Settings
from triradix.serving.summary import PEER, WITHOUT

Report = dict[str, Any]
STYLES = {
    "none": "plain",
    "triradix-reference": "s0",
    "triradix-cython": "s1",
    "triradix-rust": "s2",
    "sglang-python": "s3",
    "sglang-rust": "s4",
}
_BY = ("{x} at a time: ", "{name} {y}")


def render(report: Report) -> str:
    """``report``: as `triradix.serving.experiment` makes it."""
    page = files("triradix.serving").joinpath("experiment.html").read_text(encoding="utf-8")
    return Template(page).substitute(
        style=pages.style(),
        script=pages.script(),
        tiles="".join(_tile(cache, report) for cache in caches(report)),
        sentences="".join(f"<li>{escape(sentence)}</li>" for sentence in sentences(report)),
        sections="".join(_section(workload, report) for workload in workloads(report)),
        facts="".join(f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in _facts(report)),
        command=escape(Settings.read(report["settings"]).command),
    )


def _key(cache: str) -> str:
    return f'<span class="key {STYLES[cache]}">{escape(cache)}</span>'


def _tile(cache: str, report: Report) -> str:
    lines = []
    for workload in workloads(report):
        points = [p for p in report["points"] if p["cache"] == cache and p["workload"] == workload]
        times, shares = ([p[name]["median"] for p in points] for name in ("cache µs per request", "share"))
        text = f"{_range(times, duration_text)} a request, {_range(shares, percent)} of the busy scheduler"
        for ratio in report["ratios"]:
            if (ratio["cache"], ratio["workload"]) == (cache, workload) and cache != WITHOUT:
                text += f"; {ratio['ratio']:.2f} × {PEER} ({ratio['low']:.2f} – {ratio['high']:.2f})"
        lines.append(f"<span>{escape(workload)}: {escape(text)}</span>")
    return f'<div class="tile">{_key(cache)}{"".join(lines)}</div>'


def _range(values: list[float], text: Callable[[float], str]) -> str:
    return text(values[0]) if len(values) == 1 else f"{text(min(values))} to {text(max(values))}"


def _section(workload: str, report: Report) -> str:
    figures = "".join(
        _chart(title, workload, report, name, text, log)
        for title, name, text, log in (
            ("Cache time per request", "cache µs per request", duration_text, True),
            ("Cache time, share of the busy scheduler", "share", percent, False),
            ("The same without the model's part", "share without model", percent, False),
            ("Throughput, requests a second", "requests/s", lambda value: f"{value:.0f}", False),
            ("TTFT p50", "TTFT p50 ms", milliseconds, True),
            ("TTFT p99", "TTFT p99 ms", milliseconds, True),
        )
    )
    names = "".join(f'<th scope="col">{_key(cache)}</th>' for cache in caches(report))
    calls = "".join(_call_row(call, found) for call, found in call_rows(report, workload))
    rows = "".join(_point_row(point, cells) for point, cells in point_rows(report, workload))
    return (
        f'<h2>{escape(workload.capitalize())}</h2><div class="figures">{figures}</div>'
        "<h3>Each call of the cache: how often for a request, mean, p50 and p99</h3>"
        f'<div class="wide"><table class="calls"><thead><tr><td></td>{names}</tr></thead>'
        f"<tbody>{calls}</tbody></table></div>"
        "<h3>Each point: medians, and the least and most of the repeats</h3>"
        '<div class="wide"><table class="points"><thead><tr><th scope="col">at a time</th><th scope="col">cache</th>'
        '<th scope="col">requests/s</th><th scope="col">TTFT p50</th><th scope="col">TTFT p99</th>'
        '<th scope="col">in the cache</th><th scope="col">of the scheduler</th><th scope="col">hits</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _chart(title: str, workload: str, report: Report, name: str, text: Callable[[float], str], log: bool) -> str:
    series = []
    for cache in caches(report):
        mine = sorted(
            (p for p in report["points"] if p["cache"] == cache and p["workload"] == workload),
            key=lambda p: p["concurrency"],
        )
        series.append(Series(cache, STYLES[cache], [p["concurrency"] for p in mine], [p[name]["median"] for p in mine]))
    marks = tuple(sorted({at for each in series for at in each.x}))
    x = Axis(marks[0], max(marks[-1], marks[0] + 1), True, lambda value: f"{value:,.0f}", marks)
    values = [value for each in series for value in each.y if value is not None]
    y = log_axis(values, text) if log else Axis(0, max(values) * 1.05 or 1, False, text)
    return line_chart(f"{title}: {workload}", series, x, y, _BY)


def _call_row(call: str, found: list[dict[str, Any] | None]) -> str:
    cells = "".join(
        "<td>–</td>"
        if each is None
        else (
            f"<td>{each['per request']:.2g} × {duration_text(each['mean µs'])}"
            f"<small>{duration_text(each['p50 µs'])} · {duration_text(each['p99 µs'])}</small></td>"
        )
        for each in found
    )
    return f'<tr><th scope="row">{escape(call)}</th>{cells}</tr>'


def _point_row(point: dict[str, Any], cells: list[str]) -> str:
    values = "".join(_two_lines(cell) for cell in cells)
    return f'<tr><th scope="row">{point["concurrency"]}</th><td>{_key(point["cache"])}</td>{values}</tr>'


def _two_lines(cell: str) -> str:
    """A median, and the range in brackets below it."""
    figure, _, spread = cell.partition(" (")
    return f"<td>{escape(figure)}" + (f"<small>{escape(spread.rstrip(')'))}</small>" if spread else "") + "</td>"


def _facts(report: Report) -> list[tuple[str, str]]:
    machine, settings, load = report["machine"], report["settings"], report["load"]
    core = report["had a core"]
    repeats = sorted({point["repeats"] for point in report["points"]})
    return [
        ("machine", f"{machine['cpu']}, {machine['cores']} cores"),
        (
            "load",
            f"before an engine was started {load['median']:.2f} ({load['least']:.2f} to {load['most']:.2f}): the "
            "average of a minute, in which the engine before it may still count",
        ),
        (
            "had a core",
            f"the scheduler's thread, {core['median']:.0%} of the time of its steps ({core['least']:.0%} to "
            f"{core['most']:.0%} over the runs): the rest of it something else had both cores",
        ),
        ("runs", f"{report['runs']}, each {settings['requests']} requests; repeats: {', '.join(map(str, repeats))}"),
        (
            "engine",
            f"SGLang 0.5.23 on the CPU, a random Llama of 2 layers, {settings['pool_tokens']:,} KV slots, page size "
            f"{settings['page_size']}, {settings['schedule_policy']}; attention computes the new tokens only",
        ),
        ("trace", settings["trace"] or "none was given"),
        ("versions", f"triradix {report['triradix']} ({report['commit'] or 'no commit'}), {machine['python']}"),
        ("begun", report["created"]),
    ]
