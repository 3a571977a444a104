"""What ``make replay`` measured: time in the cache per request, over a trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from asv_benchmarks.site.parts import Part, excerpt, links, machine_text, read_json, write_page
from triradix.replay.page import render_page

EMPTY = Part("replay", "A trace, replayed", "make replay")


def replay_part(made: Path, site: Path) -> Part:
    report = read_json(made / "replay.json", EMPTY.command)
    if report is None:
        return EMPTY
    page = render_page(report)
    write_page(page, report, site / "replay.html")
    body = excerpt(page, "</h1>", "<h2>Each operation")
    facts = {
        "measured": report["created"][:10],
        "commit": report.get("commit", ""),
        "machine": machine_text(report["machine"]),
        "command": report["command"],
    }
    body += links([("replay.html", "Every curve and figure of this replay"), ("replay.json", "JSON")])
    return replace(EMPTY, body=body, made=facts)
