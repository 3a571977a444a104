"""What ``make compare`` and ``make replay`` measured: each one's own page, and what the first page takes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asv_benchmarks.site.parts import Part, between, excerpt, links, machine_text, read_json, write_page
from triradix.compare.page import render_page as comparison_page
from triradix.replay.page import render_page as replay_page


@dataclass(frozen=True)
class Kind:
    """``until``: the heading where the excerpt ends. ``made``: where the report says when it was made."""

    empty: Part
    render: Callable[[dict[str, Any]], str]
    until: str
    made: str
    whole: str
    """What the link to the page says."""


KINDS = (
    Kind(
        Part("compare", "Beside the peers", "make compare"),
        comparison_page,
        "<h2>How it was measured</h2>",
        "made",
        "This comparison, and how it was measured",
    ),
    Kind(
        Part("replay", "A trace, replayed", "make replay"),
        replay_page,
        "<h2>Each operation",
        "created",
        "Every curve and figure of this replay",
    ),
)


def report_part(kind: Kind, made: Path, site: Path) -> Part:
    name = kind.empty.name
    report = read_json(made / f"{name}.json", kind.empty.command)
    if report is None:
        return kind.empty
    page = kind.render(report)
    write_page(page, report, site / f"{name}.html")
    facts = {
        "measured": report[kind.made][:10],
        "commit": report["commit"] or "",
        "machine": machine_text(report["machine"]),
        "command": report["command"],
    }
    body = excerpt(page, "</h1>", kind.until) + links([(f"{name}.html", kind.whole), (f"{name}.json", "JSON")])
    return replace(kind.empty, body=body, made=facts, styles=between(page, "<style>", "</style>"))
