"""What ``make compare`` measured: our trees beside their peers, row by row, what is lost first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from asv_benchmarks.site.parts import Part, between, excerpt, links, machine_text, read_json, write_page
from triradix.compare.page import render_page

EMPTY = Part("compare", "Beside the peers", "make compare")


def comparison_part(made: Path, site: Path) -> Part:
    report = read_json(made / "compare.json", EMPTY.command)
    if report is None:
        return EMPTY
    page = render_page(report)
    write_page(page, report, site / "compare.html")
    body = excerpt(page, "</h1>", "<h2>How it was measured</h2>")
    facts = {
        "measured": report["made"][:10],
        "commit": report["commit"] or "",
        "machine": machine_text(report["machine"]),
        "command": report["command"],
    }
    body += links([("compare.html", "This comparison, and how it was measured"), ("compare.json", "JSON")])
    return replace(EMPTY, body=body, made=facts, styles=between(page, "<style>", "</style>"))
