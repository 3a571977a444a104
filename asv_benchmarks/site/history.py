"""What asv measured, over the commits: charts of the headline benchmarks, and the way to every graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from html import escape
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from asv.graph import Graph  # type: ignore[import-untyped]

from asv_benchmarks.site.parts import Part
from triradix.implementations import IMPLEMENTATIONS
from triradix.replay.charts import Axis, Series, line_chart, log_axis
from triradix.replay.table import bytes_text, duration_text

EMPTY = Part("history", "Over the commits", "make bench")

HEADLINES: dict[str, dict[str, str]] = {
    "match.HotMatch.time_one_match": {"page size": "1", "tokens": "8192"},
    "match.SharedPromptMatch.time_one_match": {"page size": "1", "shared tokens": "2048"},
    "insert.FreshInsert.time_one_insert": {"page size": "1", "tokens": "1024"},
    "evict.EvictByPolicy.time_evict_512_tokens": {"policy": "lru", "leaves": "100000"},
    "batch.BatchMatch.time_one_key": {"keys in a batch": "10000", "threads": "2"},
    "memory.BytesPerToken.track_bytes_per_token": {"memory": "counted"},
}
"""Benchmark → which of its parameters' values the chart shows; others are shown only if these were not measured."""


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


def history_part(index: dict[str, Any], pages: Path) -> Part:
    """``index``: asv's index.json; ``pages``: where ``asv publish`` wrote, its JSON files still there."""
    history = _fullest(index, pages)
    revisions = history.revisions
    charts = [_chart(name, history, HEADLINES[name]) for name in HEADLINES if name in history.graphs]
    groups: dict[str, list[str]] = {}
    for name in sorted(history.graphs):
        groups.setdefault(name.partition(".")[0], []).append(name)
    many = len(revisions) > 1
    body = (
        f"<p>{len(history.graphs)} benchmarks on {len(revisions)} commit{'s' if many else ''}; less is better. "
        '<a href="asv/index.html">All graphs</a>, <a href="asv/index.html#/summarylist">the list</a>, '
        '<a href="asv/index.html#/regressions">what became slower</a>, <a href="commits.html">the commits</a>.</p>'
        + (f'<div class="figures">{"".join(charts)}</div>' if many else "")
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
    found = []
    for settings in index["graph_param_list"]:
        graphs = {}
        for name in index["benchmarks"]:
            path = pages / f"{Graph.get_file_path(settings, name)}.json"
            if path.exists():
                graphs[name] = {int(at): value for at, value in json.loads(path.read_text(encoding="utf-8"))}
        found.append(History(index, settings["machine"], graphs))
    return max(found, key=lambda one: sum(map(len, one.graphs.values())))


def _chart(name: str, history: History, wanted: dict[str, str]) -> str:
    """A curve for each implementation; "" if there is nothing to draw."""
    benchmark, revisions = history.index["benchmarks"][name], history.revisions
    parameters = [parameter for parameter in benchmark["param_names"] if parameter != "implementation"]
    combinations = _combinations(benchmark, tuple(wanted.get(parameter) for parameter in parameters))
    for chosen, places in combinations:
        series = []
        for implementation, place in places.items():
            values = [_value(history.graphs[name].get(revision), place, benchmark["unit"]) for revision in revisions]
            if any(value is not None for value in values):
                style = f"s{IMPLEMENTATIONS.index(implementation)}"
                series.append(Series(implementation, style, range(len(revisions)), values))
        if series:
            settings = dict(zip(parameters, chosen, strict=True))
            break
    else:
        return ""
    hashes = [history.hash_of(revision) for revision in revisions]
    commits = Axis(0, len(hashes) - 1, False, lambda at: hashes[int(at)] if at == int(at) else "")
    scale = log_axis([value for each in series for value in each.y if value is not None], _text(benchmark["unit"]))
    chart = line_chart(_readable(name), series, commits, scale, ("{x}: ", "{name} {y}"))
    text = ", ".join(f"{parameter} {_plain(value)}" for parameter, value in settings.items())
    address = history.address(name, settings)
    note = f'<span class="soft">{escape(text)} <a href="{escape(address)}">graph</a></span>'
    return chart.replace("</figcaption>", f"{note}</figcaption>", 1)


def _combinations(
    benchmark: dict[str, Any], wanted: tuple[str | None, ...]
) -> list[tuple[tuple[str, ...], dict[str, int]]]:
    """The other parameters' values and, for each implementation, its place among the results; the wanted ones first."""
    at = benchmark["param_names"].index("implementation")
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for place, values in enumerate(product(*benchmark["params"])):
        found.setdefault(values[:at] + values[at + 1 :], {})[_plain(values[at])] = place
    largest_first = list(found.items())[::-1]
    return sorted(largest_first, key=lambda one: tuple(map(_plain, one[0])) != wanted)


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


def _plain(value: str) -> str:
    """asv writes parameters as repr does."""
    return value.strip("'")


def _day(milliseconds: float) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).date().isoformat()
