"""What asv measured, over the commits: charts of the headline benchmarks, and the way to every graph."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from html import escape
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from asv.graph import Graph  # type: ignore[import-untyped]

from asv_benchmarks.selections import HISTORY, regexes
from asv_benchmarks.site import CannotMake
from asv_benchmarks.site.parts import Part
from triradix.implementations import IMPLEMENTATIONS
from triradix.replay.charts import Axis, Series, line_chart, log_axis
from triradix.replay.table import bytes_text, duration_text

EMPTY = Part("history", "Over the commits", "make bench-history")


@dataclass(frozen=True)
class History:
    """Everything measured on one machine."""

    index: dict[str, Any]
    """asv's index.json."""
    machine: str
    graphs: dict[str, dict[int, Any]]
    """Benchmark → revision → value, or the list of values of all combinations of parameters."""

    @property
    def revisions(self) -> list[int]:
        return sorted({revision for points in self.graphs.values() for revision in points})

    def hash_of(self, revision: int) -> str:
        full: str = self.index["revision_to_hash"][str(revision)]
        return full[: self.index["hash_length"]]

    def address(self, name: str, chosen: dict[str, str] | None = None) -> str:
        """Of the graph, showing this machine alone and the chosen values of parameters."""
        shown = {f"p-{parameter}": value for parameter, value in (chosen or {}).items()}
        if len(self.index["params"]["machine"]) > 1:
            shown["machine"] = self.machine
        return f"asv/index.html#{quote(name)}" + (f"?{urlencode(shown, quote_via=quote)}" if shown else "")


@dataclass(frozen=True)
class Headline:
    """A benchmark at one combination of its other parameters."""

    name: str
    others: dict[str, str]
    curves: dict[str, list[float | None]]
    """Implementation → value at each revision, times in µs."""
    text: Callable[[float], str]
    """Writes a value for people."""


def history_part(index: dict[str, Any], pages: Path) -> Part:
    """``index``: asv's index.json; ``pages``: where ``asv publish`` wrote, its JSON files still there."""
    history = _fullest(index, pages)
    revisions = history.revisions
    if not revisions:
        raise CannotMake("asv's results are all of benchmarks that are no longer there")
    groups: dict[str, list[str]] = {}
    for name in sorted(history.graphs):
        groups.setdefault(name.partition(".")[0], []).append(name)
    many = len(revisions) > 1
    body = (
        f"<p>{len(history.graphs)} benchmarks on {len(revisions)} commit{'s' if many else ''}; less is better. "
        '<a href="asv/index.html">All graphs</a>, <a href="asv/index.html#/summarylist">the list</a>, '
        '<a href="asv/index.html#/regressions">what became slower</a>, <a href="commits.html">the commits</a>.</p>'
        + (_charts if many else _table)(list(_headlines(history)), history)
        + f'<dl class="names">{"".join(_group(group, names, history) for group, names in groups.items())}</dl>'
    )
    known = index["machines"][history.machine]
    facts = {
        "newest commit": history.hash_of(revisions[-1]),
        "of": _day(index["revision_to_date"][str(revisions[-1])]),
        "machine": f"{known['cpu']}, {known['num_cpu']} cores, {known['os']}",
    }
    return replace(EMPTY, body=body, made=facts)


def _fullest(index: dict[str, Any], pages: Path) -> History:
    """Of all machines and environments, the one with most values."""
    found = [History(index, "", {})]
    for settings in index["graph_param_list"]:
        graphs = {}
        for name in index["benchmarks"]:
            path = pages / f"{Graph.get_file_path(settings, name)}.json"
            if path.exists():
                graphs[name] = {int(at): value for at, value in json.loads(path.read_text(encoding="utf-8"))}
        found.append(History(index, settings["machine"], graphs))
    return max(found, key=lambda one: sum(map(len, one.graphs.values())))


def _headlines(history: History) -> Iterator[Headline]:
    """The benchmarks of the history profile that were measured."""
    for regex in map(re.compile, regexes(HISTORY)):
        for name in history.graphs:
            benchmark = history.index["benchmarks"][name]
            for others, places in _selected(name, benchmark, regex).items():
                curves = {
                    implementation: [
                        _value(history.graphs[name].get(revision), place, benchmark["unit"])
                        for revision in history.revisions
                    ]
                    for implementation, place in places.items()
                }
                if any(value is not None for values in curves.values() for value in values):
                    yield Headline(name, dict(others), curves, _text(benchmark["unit"]))


def _selected(
    name: str, benchmark: dict[str, Any], regex: re.Pattern[str]
) -> dict[tuple[tuple[str, str], ...], dict[str, int]]:
    """The other parameters and their values → implementation → its place among the benchmark's results."""
    found: dict[tuple[tuple[str, str], ...], dict[str, int]] = {}
    for place, values in enumerate(product(*benchmark["params"])):
        chosen = dict(zip(benchmark["param_names"], values, strict=True))
        implementation = chosen.pop("implementation", "").strip("'")
        if implementation in IMPLEMENTATIONS and regex.search(f"{name}({', '.join(values)})"):
            found.setdefault(tuple(chosen.items()), {})[implementation] = place
    return found


def _charts(headlines: Sequence[Headline], history: History) -> str:
    hashes = [history.hash_of(revision) for revision in history.revisions]
    # Four: more hashes would run into each other.
    marks = tuple(sorted({round(part * (len(hashes) - 1) / 3) for part in range(4)}))
    commits = Axis(0, len(hashes) - 1, False, lambda at: hashes[int(at)], marks)
    charts = []
    for one in headlines:
        series = [
            Series(name, f"s{IMPLEMENTATIONS.index(name)}", range(len(hashes)), values)
            for name, values in one.curves.items()
        ]
        scale = log_axis([value for each in series for value in each.y if value is not None], one.text)
        chart = line_chart(_readable(one.name), series, commits, scale, ("{x}: ", "{name} {y}"))
        charts.append(chart.replace("</figcaption>", f"{_settings(one, history)}</figcaption>", 1))
    return f'<div class="figures">{"".join(charts)}</div>'


def _table(headlines: Sequence[Headline], history: History) -> str:
    """For a single commit, of which a curve would show nothing."""
    head = "".join(f'<th scope="col">{name}</th>' for name in IMPLEMENTATIONS)
    rows = []
    for one in headlines:
        values = [one.curves.get(name, [None])[-1] for name in IMPLEMENTATIONS]
        cells = "".join(f"<td>{'–' if value is None else one.text(value)}</td>" for value in values)
        title = f"{escape(_readable(one.name))}<small>{_settings(one, history)}</small>"
        rows.append(f'<tr><th scope="row">{title}</th>{cells}</tr>')
    return (
        f'<div class="wide"><table class="plain headlines"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _settings(headline: Headline, history: History) -> str:
    text = ", ".join(f"{parameter} {value}" for parameter, value in headline.others.items()).replace("'", "")
    address = history.address(headline.name, headline.others)
    return f'<span class="soft">{escape(text)} <a href="{escape(address)}">graph</a></span>'


def _value(values: Any, place: int, unit: str) -> float | None:
    """In µs if it is a time."""
    value: float | None = values and values[place]
    return value * 1e6 if value is not None and unit == "seconds" else value


def _text(unit: str) -> Callable[[float], str]:
    if unit == "seconds":
        return duration_text
    return bytes_text if unit == "bytes" else lambda value: f"{value:.3g}"


def _group(group: str, names: Sequence[str], history: History) -> str:
    graphs = " ".join(f'<a href="{escape(history.address(name))}">{escape(_readable(name))}</a>' for name in names)
    return f"<dt>{escape(group)}</dt><dd>{graphs}</dd>"


def _readable(name: str) -> str:
    """``match.HotMatch.time_one_match`` as HotMatch: one match."""
    *_, owner, method = name.split(".")
    kind, _, what = method.partition("_")
    what = what.replace("_", " ")
    return f"{owner}: peak memory, {what}" if kind == "peakmem" else f"{owner}: {what}"


def _day(milliseconds: float) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).date().isoformat()
