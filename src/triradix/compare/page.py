"""The report as one HTML page that needs nothing else. Style and script are those of the replay's page."""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from triradix import pages
from triradix.compare.report import Report, number
from triradix.compare.systems import SYSTEMS
from triradix.compare.table import (
    footnotes,
    interval_text,
    median_text,
    nothing_lost,
    quartiles_text,
    ratio_to_peer,
    ratios_text,
    stands_in,
    title_text,
)
from triradix.replay.charts import Axis, Series, line_chart, log_axis
from triradix.replay.table import duration_text

_HOT = re.compile(r"hot-\d+k?")
"""The rows of the plot: the hot match with an int64 key, at each length."""


def render_page(report: Report) -> str:
    page = files("triradix.compare").joinpath("page.html").read_text(encoding="utf-8")
    sections = dict.fromkeys(row["section"] for row in report["rows"])
    return Template(page).substitute(
        style=pages.style(),
        script=pages.script(),
        introduction=escape(_introduction(report)),
        lost=_lost(report),
        figures="".join(_figures(report)) or "<p>This run has not the two lengths that a curve needs.</p>",
        sections="".join(_section(name, report) for name in sections),
        facts="".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in _facts(report)),
        command=escape(report["command"]),
    )


def style(name: str) -> str:
    """The class of a system's colour: its own, whatever else was measured."""
    return f"s{[system.name for system in SYSTEMS].index(name)}"


def _introduction(report: Report) -> str:
    ratios = f"{text}, and " if (text := ratios_text(report)) else ""
    quick = " This was a quick run: smaller, with fewer rounds." if report["quick"] else ""
    return (
        "Every system in a process of its own on the same core, in turns, in one run: medians, and below them the "
        f"quartiles. Below ours {ratios}the quotient to the floor, which is what the machine takes to compare the same "
        f"tokens and to load once for each hop.{quick}"
    )


def _lost(report: Report) -> str:
    behind = [row for row in report["rows"] if row["lost"]]
    if not behind:
        judged = any(cell["met"] is not None for row in report["rows"] for cell in row["cells"].values())
        return f"<h2>{nothing_lost(report)}</h2>" if judged else ""
    items = "".join(
        f"<li><b>{escape(row['title'])}</b>{'<br>'.join(escape(each) for each in row['lost'])}</li>" for row in behind
    )
    share = f"{len(behind)} of {len(report['rows'])} rows"
    return f'<h2>Bars missed, peers ahead: {share}</h2><ul class="lost">{items}</ul>'


def _figures(report: Report) -> list[str]:
    """Time against length, and the same as a multiple of the floor: one line for each system."""
    rows = sorted(
        (row for row in report["rows"] if _HOT.fullmatch(row["name"])), key=lambda row: int(row["parameters"]["tokens"])
    )
    if len(rows) < 2:
        return []
    lengths = [float(row["parameters"]["tokens"]) for row in rows]
    x = Axis(lengths[0], lengths[-1], True, lambda n: f"{n / 1024:.0f}K" if n >= 1024 else f"{n:.0f}", tuple(lengths))
    times, quotients = [], []
    for system in report["systems"]:
        medians = [row["cells"].get(system["name"], {}).get("median") for row in rows]
        if not any(median is not None for median in medians):
            continue
        times.append(Series(system["label"], style(system["name"]), lengths, medians))
        shares = [m / row["floor"] if m and row["floor"] else None for m, row in zip(medians, rows, strict=True)]
        if any(share is not None for share in shares):
            quotients.append(Series(system["label"], style(system["name"]), lengths, shares))
    floors = [row["floor"] for row in rows]
    if any(floor is not None for floor in floors):
        times.append(Series("floor", "plain", lengths, floors))
    readout = ("{x} tokens: ", "{name} {y}")
    figures = [line_chart("Time a match, over its tokens", times, x, log_axis(_values(times), _time), readout)]
    if quotients:
        axis = log_axis(_values(quotients), lambda value: f"{number(value)}×")
        figures.append(line_chart("As a multiple of the floor, over the tokens", quotients, x, axis, readout))
    return figures


def _values(series: list[Series]) -> list[float]:
    return [value for each in series for value in each.y if value is not None]


def _time(microseconds: float) -> str:
    """Three digits, from ns on."""
    return f"{microseconds * 1000:.3g} ns" if microseconds < 0.9995 else duration_text(microseconds)


def _section(name: str, report: Report) -> str:
    rows = [row for row in report["rows"] if row["section"] == name]
    systems = [system for system in report["systems"] if stands_in(system, rows)]
    floor = any(row["floor"] is not None for row in rows)
    head = "".join(
        f'<th scope="col"><span class="key {style(system["name"])}">{escape(system["label"])}</span></th>'
        for system in systems
    ) + ("<th>floor</th>" if floor else "")
    body = "".join(_row(row, [system["name"] for system in systems], floor) for row in rows)
    return (
        f'<h2>{escape(name)}</h2><div class="wide"><table class="compare"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: dict[str, Any], systems: list[str], floor: bool) -> str:
    bar = f"<small>{escape(row['bar']['text'])}</small>" if row["bar"] else ""
    cells = "".join(_cell(row, row["cells"].get(name)) for name in systems)
    if floor:
        cells += f"<td>{'' if row['floor'] is None else number(row['floor'])}</td>"
    return f'<tr><th scope="row">{escape(title_text(row))}{bar}</th>{cells}</tr>'


def _cell(row: dict[str, Any], cell: dict[str, Any] | None) -> str:
    if cell is None or cell["median"] is None:
        return f'<td title="{escape(cell["missing"] or "") if cell else ""}">–</td>'
    text = f'<td title="{len(cell["rounds"])} rounds">{median_text(cell)}{_mark(cell["met"])}'
    text += f"<small>{quartiles_text(cell)}</small>"
    if cell["ratio"]:
        text += f"<small>{ratio_to_peer(row, cell)} ({interval_text(row, cell)})</small>"
    if cell["quotient"] is not None:
        text += f"<small>{number(cell['quotient'])}× floor{_mark(cell['within_floor'])}</small>"
    return text + "</td>"


def _mark(good: bool | None) -> str:
    if good is None:
        return ""
    return ' <span class="met">✓</span>' if good else ' <span class="missed">✗</span>'


def _facts(report: Report) -> list[tuple[str, str]]:
    machine = report["machine"]
    versions = [f"{each['label']} {each['version']}" for each in report["systems"] if each["version"]]
    return [
        ("machine", f"{machine['cpu']}, {machine['cores']} cores"),
        ("system", f"{machine['system']}, {machine['python']}"),
        ("versions", ", ".join(versions)),
        ("commit", report["commit"] or "not from a checkout"),
        ("method", " ".join(footnotes(report))),
        ("made", report["made"]),
    ]
