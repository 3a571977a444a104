"""One page of everything that was recorded: it loads nothing, and may be sent by mail."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from string import Template
from typing import Any

from profiles import flamegraph, folded, pauses, rows, waits
from profiles.words import sentences
from triradix import pages
from triradix.replay.charts import Axis, Series, line_chart, log_axis

HERE = Path(__file__).parent
KIND_TEXTS = {
    "gil": "who holds the GIL",
    "cpu": "who runs, with compiled code",
    "idle": "who runs or waits, with compiled code",
}


class CannotReport(Exception):
    """Why there is no page, in one sentence."""


def read_summary(folder: Path) -> dict[str, Any]:
    path = folder / "summary.json"
    try:
        summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CannotReport(f"{folder} holds no recordings: `make profile` makes them") from None
    except (OSError, ValueError) as error:
        raise CannotReport(f"{path} cannot be read ({error}): `make profile` makes it anew") from None
    return summary


def read_stacks(path: Path) -> Counter[folded.Stack]:
    try:
        with path.open(encoding="utf-8") as lines:
            stacks: Counter[folded.Stack] = Counter()
            for stack, samples in folded.read(lines):  # some write a stack as often as they saw it
                stacks[stack] += samples
    except OSError as error:
        raise CannotReport(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CannotReport(f"{path}: {error}") from None
    if not sum(stacks.values()):
        raise CannotReport(f"{path} holds no samples")
    return stacks


def report(folder: Path) -> str:
    """The page of the recordings in ``folder``; CannotReport if they are not whole."""
    summary = read_summary(folder)
    machine, load = summary["machine"], summary["load"]
    origin = (
        f"Commit {summary['commit'] or 'unknown'}, {summary['created'][:10]}, {machine['cpu']}, {machine['cores']} "
        f"cores, {machine['python']}. N threads match, {rows.keys_text(load['batch'])}; one inserts and evicts; one "
        f"stands for the engine's own Python code and counts. Each window took {load['seconds']} s, {load['rate']} "
        "samples a second."
    )
    body = [
        "<h2>What one sees</h2><ul>",
        *(f"<li>{escape(sentence)}</li>" for sentence in sentences(summary)),
        "</ul><h2>In figures</h2>",
        _table(summary, rows.COLUMNS, rows.row, rows.GROUPS),
        "<h2>Over the number of matchers</h2>",
        _curves(summary),
        "<h2>What the sampling cost</h2><p>Look-ups a second while sampled, beside those of the unprofiled window. "
        "More than 100%: a thread that is stopped hands the GIL on to those behind it, or other programs took less of "
        "the machine.</p>",
        _table(summary, rows.COST_COLUMNS, rows.cost_row),
        *_collector(folder),
        "<h2>Flame graphs</h2>",
        _graphs(folder, summary),
    ]
    return page("Who holds the GIL, who runs and who waits", escape(origin), "".join(body))


def page(title: str, origin: str, body: str) -> str:
    return Template((HERE / "page.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        style=pages.style(),
        flames=flamegraph.STYLE,
        origin=origin,
        body=body,
        script=pages.script(),
        flamescript=(HERE / "flamegraph.js").read_text(encoding="utf-8"),
    )


def table(
    columns: Iterable[str], lines: Iterable[tuple[str, Iterable[str]]], groups: Sequence[tuple[str, int]] = ()
) -> str:
    """``groups``: what stands above the columns, and how many; a line is drawn before each."""
    edges = {sum(width for _, width in groups[:at]) for at in range(1, len(groups))}
    above = "".join(
        f'<th scope="colgroup" colspan="{width}">{escape(name)}</th>' if name else f'<td colspan="{width}"></td>'
        for name, width in groups
    )
    head = "".join(f'<th scope="col"{_edge(at in edges)}>{escape(column)}</th>' for at, column in enumerate(columns))
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td{_edge(at in edges)}>{escape(cell)}</td>" for at, cell in enumerate(cells))
        + "</tr>"
        for name, cells in lines
    )
    return (
        f'<div class="wide"><table class="plain gil"><thead>{f"<tr><td></td>{above}</tr>" if above else ""}'
        f"<tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _edge(edge: bool) -> str:
    return ' class="edge"' if edge else ""


def _table(
    summary: dict[str, Any],
    columns: Iterable[str],
    cells: Callable[[dict[str, Any]], list[str]],
    groups: Sequence[tuple[str, int]] = (),
) -> str:
    runs = [run for runs in rows.by_implementation(summary).values() for run in runs]
    return table(columns, [(run["implementation"], cells(run)) for run in runs], groups)


def _curves(summary: dict[str, Any]) -> str:
    by_name = rows.by_implementation(summary)
    most = max(run["matchers"] for run in summary["runs"])
    if most == 1:
        return "<p>Recorded with one matcher only.</p>"
    measures: list[tuple[str, Callable[[dict[str, Any]], float | None], Callable[[float], str], bool]] = [
        ("Look-ups a second", lambda run: run["control"]["matches"], lambda value: f"{value:,.0f}", True),
        ("The scheduler keeps, of its speed", rows.kept_speed, _percent, False),
        ("The GIL held by the cache's threads", rows.held_by_cache, _percent, False),
        ("A matcher waits for the GIL", lambda run: _state(run, waits.GIL), _percent, False),
        ("A matcher waits for another lock", lambda run: _state(run, waits.LOCK), _percent, False),
        ("p99 of a call", lambda run: run["control"]["p99"], rows.time_text, True),
    ]
    x = Axis(1, most, False, lambda value: f"{value:.0f}", tuple(sorted({run["matchers"] for run in summary["runs"]})))
    charts = []
    for title, measure, text, log in measures:
        series = [
            Series(name, f"s{at}", [run["matchers"] for run in runs], [measure(run) for run in runs])
            for at, (name, runs) in enumerate(by_name.items())
        ]
        values = [value for one in series for value in one.y if value is not None]
        y = log_axis(values, text) if log else Axis(0, max(1.0, *values), False, text)
        charts.append(line_chart(title, series, x, y, ("{x} matchers: ", "{name} {y}")))
    return f'<div class="figures">{"".join(charts)}</div>'


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _state(run: dict[str, Any], state: str) -> float:
    share: float = run["recordings"]["idle"]["states"]["matchers"][state]
    return share


def _collector(folder: Path) -> list[str]:
    path = folder / pauses.FILE
    if not path.exists():
        return []
    measured = json.loads(path.read_text(encoding="utf-8"))
    return [
        "<h2>Python's garbage collector</h2>",
        f"<p>{escape(pauses.explained(measured))}</p>",
        table(pauses.COLUMNS, pauses.lines(measured)),
    ]


def _graphs(folder: Path, summary: dict[str, Any]) -> str:
    runs = {(run["implementation"], run["matchers"]): run for run in summary["runs"]}
    numbers = sorted({matchers for _, matchers in runs})
    single, differences = [], []
    for kind in KIND_TEXTS:
        for number in numbers:
            stacks = {
                name: read_stacks(folder / f"{run['recordings'][kind]['name']}.folded")
                for (name, matchers), run in runs.items()
                if matchers == number
            }
            for name, one in stacks.items():
                flags = " ".join(runs[name, number]["recordings"][kind]["flags"])
                graph = flamegraph.flame_graph(one, f"{name}, {rows.matchers_text(number)}: {KIND_TEXTS[kind]}")
                single.append(figure(graph, name, f"py-spy record {flags}", kind, number))
            for before, after in combinations(stacks, 2):
                graph = flamegraph.differential(stacks[before], stacks[after], f"from {before} to {after}")
                differences.append(figure(graph, f"from {before} to {after}", "", kind, number))
    languages = "".join(
        f'<span class="language" style="--colour: {colour}">{name}</span>'
        for name, colour in flamegraph.COLOURS.items()
    )
    return (
        "<p>The root is at the top; a box is as wide as its share of the samples. Click one to make it as wide as the "
        "picture, and the top one to go back; Enter and Escape do the same.</p>"
        '<div class="controls"><label>Recording <select name="kind">'
        + "".join(f'<option value="{kind}">{text}</option>' for kind, text in KIND_TEXTS.items())
        + '</select></label><label>Matchers <select name="matchers">'
        + "".join(f'<option value="{number}">{number}</option>' for number in numbers)
        + '</select></label><label>Search <input type="search" placeholder="function or file"></label>'
        f'<button type="button">all back to full width</button>{languages}</div>'
        f'<div class="graphs">{"".join(single)}</div>'
        "<h2>Differences</h2><p>A box is as wide as the mean of its two shares: red has gained, blue has lost, white "
        f'is as before.</p><div class="graphs">{"".join(differences)}</div>'
    )


def figure(graph: flamegraph.FlameGraph, title: str, note: str, kind: str = "", matchers: int | str = "") -> str:
    return (
        f'<figure data-kind="{kind}" data-matchers="{matchers}"><figcaption><b>{escape(title)}</b>'
        f'<span><small>{escape(note)}</small><span class="share"></span></span></figcaption>{graph.inline()}</figure>'
    )
