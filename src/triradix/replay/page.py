"""The report as one HTML page that needs nothing else: style, script and curves are inside."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from triradix import pages
from triradix.implementations import IMPLEMENTATIONS
from triradix.replay.charts import Axis, Series, line_chart, log_axis
from triradix.replay.recorder import OPERATIONS
from triradix.replay.report import Report
from triradix.replay.table import bytes_text, capacity_text, duration_text, outcome_text, table_rows

_OPERATION_TITLES = {
    "match": "match_prefix",
    "indices": "the slots of a match",
    "lock": "inc_lock_ref",
    "evict": "evict, with its slots",
    "insert": "insert",
    "unlock": "dec_lock_ref",
}

_BY_REQUEST = ("request {x}: ", "{name} {y}")
_SHARE = ("", "{name} {y} in {x}")


def render_page(report: Report) -> str:
    template = Template(files("triradix.replay").joinpath("page.html").read_text(encoding="utf-8"))
    trace, settings, machine = report["trace"], report["settings"], report["machine"]
    names = list(report["implementations"])
    return template.substitute(
        style=pages.style(),
        script=pages.script(),
        trace=escape(trace["name"]),
        requests=f"{trace['requests']:,}",
        prompt_tokens=f"{trace['prompt_tokens']:,}",
        outcome=escape(outcome_text(report["outcome"])),
        tiles="".join(_tile(name, report) for name in names),
        over_time="".join(_over_time(report)),
        cdfs="".join(_cdfs(report)),
        head="".join(f'<th scope="col"><span class="key {_style(name)}">{escape(name)}</span></th>' for name in names),
        rows="".join(_row(*row) for row in table_rows(report)),
        facts="".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in _facts(settings, machine, report)),
        command=escape(report["command"]),
    )


def _style(name: str) -> str:
    """The class of an implementation's colour: its own, whatever else was run."""
    return f"s{IMPLEMENTATIONS.index(name)}"


def _tile(name: str, report: Report) -> str:
    costs = report["implementations"][name]
    each = costs["time_in_cache_per_request"]
    return (
        f'<div class="tile"><span class="key {_style(name)}">{escape(name)}</span>'
        f"<strong>{duration_text(each['p50'])}</strong>"
        f"<span>p99 {duration_text(each['p99'])} · {duration_text(costs['time_in_cache_s'] * 1e6)} in all<br>"
        f"peak RSS {bytes_text(costs['peak_rss'])} · GC {duration_text(costs['gc']['total_ms'] * 1000)}</span></div>"
    )


def _over_time(report: Report) -> list[str]:
    curves, costs = report["curves"], report["implementations"]
    ends: list[int] = curves["request"]
    x = Axis(0, ends[-1], False, lambda value: f"{value:,.0f}")
    figures = []
    for level in ("p50", "p99"):
        series = [Series(name, _style(name), ends, costs[name]["curves"][level]) for name in costs]
        values = [value for each in series for value in each.y if value is not None]
        title = f"Time in the cache per request, {level}"
        figures.append(line_chart(title, series, x, log_axis(values, duration_text), _BY_REQUEST))
    percent = Axis(0, 1, False, lambda value: f"{value:.0%}")
    hits = [
        Series("last requests", "faint", ends, curves["hit_rate"]),
        Series("so far", "plain", ends, curves["hit_rate_so_far"]),
    ]
    figures.append(line_chart("Hit rate in tokens, the same for all", hits, x, percent, _BY_REQUEST))
    return figures


def _cdfs(report: Report) -> list[str]:
    costs: dict[str, Any] = report["implementations"]
    levels: list[float] = report["curves"]["cdf_levels"]
    share = Axis(0, 1, False, _percent)
    figures = []
    for operation in OPERATIONS:
        curves = {name: costs[name]["curves"]["cdf"][operation] for name in costs}
        series = [Series(name, _style(name), curves[name], levels) for name in costs if curves[name] is not None]
        if series:
            x = log_axis([value for each in series for value in each.x], duration_text)
            figures.append(line_chart(_OPERATION_TITLES[operation], series, x, share, _SHARE))
    return figures


def _percent(value: float) -> str:
    return f"{value * 100:.4g} %"


def _row(label: str, what: str, cells: list[str], ends: bool) -> str:
    values = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr{" class=end" if ends else ""}><th scope="row">{escape(label)}</th><td>{escape(what)}</td>{values}</tr>'


def _facts(settings: dict[str, Any], machine: dict[str, Any], report: Report) -> list[tuple[str, str]]:
    return [
        ("capacity", capacity_text(settings["capacity"])),
        ("page size", f"{settings['page_size']}"),
        ("policy", settings["policy"]),
        (
            "engine",
            f"chunks of {settings['chunk']:,} tokens, {settings['concurrency']} requests in flight, "
            + ("with output tokens" if settings["output_tokens"] else "without output tokens"),
        ),
        ("keys", settings["keys"]),
        ("machine", f"{machine['cpu']}, {machine['cores']} cores, {bytes_text(machine['memory'])}"),
        ("system", machine["system"]),
        (
            "versions",
            ", ".join(
                [f"triradix {report['triradix']}", machine["python"], f"NumPy {machine['numpy']}"]
                + [f"{name} {found}" for name, found in machine["versions"].items()]
            ),
        ),
        ("clock", f"reading it costs {machine['clock_ns']:.0f} ns, which is part of every time"),
        ("made", report["created"]),
    ]
