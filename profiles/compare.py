"""Two recordings beside each other: what has gained a larger share of the samples, and what has lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from rich import markup
from rich.table import Table

from profiles import flamegraph, folded, rows, sampler
from profiles.report import KIND_TEXTS, CannotReport, figure, page, read_stacks, table
from profiles.table import plain

SHOWN = 15
LEAST = 0.005
"""Smaller changes of a function's share are not listed."""


@dataclass(frozen=True)
class Change:
    """A function, and the share of the samples that have it on their stack."""

    frame: str
    before: float
    after: float


def changes(before: Mapping[folded.Stack, int], after: Mapping[folded.Stack, int]) -> list[Change]:
    """Each function's, the largest first."""
    one, other = inclusive(before), inclusive(after)
    found = [Change(frame, one[frame], other[frame]) for frame in {*one, *other}]
    found = [change for change in found if abs(change.after - change.before) >= LEAST]
    return sorted(found, key=lambda change: (-abs(change.after - change.before), change.frame))


def inclusive(stacks: Mapping[folded.Stack, int]) -> Counter[str]:
    """Frame, without its line → the share of samples that it is part of. Recursion counts once."""
    shares: Counter[str] = Counter()
    for stack, share in folded.shares(flamegraph.without_lines(flamegraph.without_start(stacks))).items():
        for frame in set(stack):
            shares[frame] += share  # type: ignore[assignment]  # a Counter of shares
    return shares


def path_of(recording: Path) -> Path:
    """Its folded stacks: any of a recording's files, or their common beginning, names it."""
    for suffix in (".folded", ".speedscope.json", ".svg", ".json"):
        if recording.name.endswith(suffix):
            return recording.with_name(recording.name.removesuffix(suffix) + ".folded")
    return recording.with_name(f"{recording.name}.folded")


def facts_of(path: Path) -> dict[str, Any] | None:
    """What `record` wrote beside the stacks; None if there is nothing of it: they may be another program's."""
    beside = path.with_suffix(".json")
    if not beside.exists():
        return None
    try:
        found: dict[str, Any] = json.loads(beside.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CannotReport(f"{beside} cannot be read ({error}): without it there would be the stacks alone") from None
    return found if isinstance(found, dict) and {"window", "shares", "flags"} <= found.keys() else None


def kind_of(facts: Mapping[str, Any]) -> str:
    """What was recorded, by py-spy's flags."""
    own = tuple(facts["flags"][: facts["flags"].index("--rate")])
    return next(kind for kind, flags in sampler.KINDS.items() if flags == own)


def kinds_differ(known: Sequence[Mapping[str, Any]]) -> str:
    """A warning, or ""."""
    kinds = list(map(kind_of, known))
    if len(set(kinds)) < 2:
        return ""
    first, second = (KIND_TEXTS[kind] for kind in kinds)
    return f"These are two different things: {first}, and {second}. A share of the one is no share of the other."


def figures(facts: Mapping[str, Any]) -> list[str]:
    """The cells of a recording below `FIGURES`."""
    window, shares = facts["window"], facts["shares"]
    return [
        f"{shares['matchers'] + shares['writer']:.2f}",
        f"{shares['scheduler']:.2f}",
        f"{window['matches']:,.0f}",
        f"{window['inserts']:,.0f}",
        "none ended" if window["p99"] is None else rows.time_text(window["p99"]),
        f"{window['processor']['matchers']['waiting']:.0%}",
    ]


FIGURES = (
    "cache threads sampled",
    "scheduler sampled",
    "look-ups/s",
    "inserts/s",
    "p99 of a call",
    "a matcher waits (GIL or lock)",
)


def compare(before: Path, after: Path) -> tuple[str, str, Table]:
    """A page, the differential flame graph, and the table of changes."""
    paths = [path_of(before), path_of(after)]
    one, other = stacks = [read_stacks(path) for path in paths]
    names = [path.stem for path in paths]
    if names[0] == names[1]:
        names = [str(path.with_suffix("")) for path in paths]
    title = f"from {names[0]} to {names[1]}"
    graph = flamegraph.differential(one, other, title)
    listed = changes(one, other)[:SHOWN]
    lines = [(change.frame, (f"{change.before:.1%}", f"{change.after:.1%}", points(change))) for change in listed]

    facts = {name: found for name, path in zip(names, paths, strict=True) if (found := facts_of(path))}
    known = [(name, figures(each)) for name, each in facts.items()]
    warning = kinds_differ(list(facts.values()))
    body = [
        *([f"<p><b>{warning}</b></p>"] if warning else []),
        "<h2>What has changed most</h2><p>The share of the samples with the function on their stack.</p>",
        table(("before", "after", "points"), lines),
        *(["<h2>What got done meanwhile</h2>", table(FIGURES, known)] if known else []),
        "<h2>Flame graphs</h2>",
        '<div class="controls"><label>Search <input type="search" placeholder="function or file"></label>'
        '<button type="button">all back to full width</button></div>',
        f'<div class="graphs">{"".join(map(_single, stacks, names))}</div>',
        "<h2>Difference</h2><p>A box is as wide as the mean of its two shares: red has gained, blue has lost.</p>",
        f'<div class="graphs">{figure(graph, title, "")}</div>',
    ]
    caption = f"share of the samples with the function on their stack{'. ' if warning else ''}{warning}"
    shown = plain(title, caption, ("", "before", "after", "points"))
    for name, cells in lines:
        shown.add_row(markup.escape(name), *cells)
    return page("Two recordings", escape(title), "".join(body)), graph.file(), shown


def _single(stacks: Mapping[folded.Stack, int], name: str) -> str:
    return figure(flamegraph.flame_graph(stacks, name), name, f"{sum(stacks.values()):,} samples")


def points(change: Change) -> str:
    return f"{(change.after - change.before) * 100:+.1f}"
