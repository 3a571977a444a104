"""What ``make compare`` measured: our trees beside their peers, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from asv_benchmarks.site.parts import Part, copy, links, machine_text, read_json
from triradix.compare.report import number

EMPTY = Part("compare", "Beside the peers", "make compare")


def comparison_part(made: Path, site: Path) -> Part:
    report = read_json(made / "compare.json", EMPTY.command)
    if report is None:
        return EMPTY
    systems, rows = report["systems"], report["rows"]
    files = copy([made / "compare.html", made / "compare.json"], site)
    texts = {"compare.html": "Everything about this comparison", "compare.json": "JSON"}
    figures, styles = _figures(made / "compare.html")
    body = (
        f"<p>{_introduction(systems, report['quick'])}</p>"
        f"{_lost(rows)}{figures}{_table(systems, rows)}{_absent(systems)}"
        + links([(name, texts[name]) for name in files])
    )
    facts = {
        "measured": report["made"][:10],
        "commit": report["commit"] or "",
        "command": report["command"],
        "machine": machine_text(report["machine"]),
    }
    return replace(EMPTY, body=body, made=facts, styles=styles)


def _introduction(systems: list[dict[str, Any]], quick: bool) -> str:
    peers = [f"{one['label']} {one['version']}".strip() for one in systems if not one["ours"] and not one["missing"]]
    beside = f" beside {', '.join(peers)}" if peers else ", without any peer"
    return escape(
        f"Our three{beside}, in turns on one core. Medians; the floor is what memcmp or memcpy of the same bytes "
        "costs, measured in the same run." + (" A quick run: do not read much into a single figure." if quick else "")
    )


def _lost(rows: list[dict[str, Any]]) -> str:
    sentences = [sentence for row in rows for sentence in row["lost"]]
    if not sentences:
        return ""
    return (
        '<div class="lost"><b>Where we lose</b><ul>'
        + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
        + "</ul></div>"
    )


def _figures(page: Path) -> tuple[str, str]:
    """The plots of the page that ``make compare`` writes, and the rules for their colours."""
    if not page.is_file():
        return "", ""
    text = page.read_text(encoding="utf-8")
    figures = re.findall(r"<figure\b.*?</figure>", text, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    if not figures:
        return "", ""
    return f'<div class="figures">{"".join(figures)}</div>', style[1] if style else ""


def _table(systems: list[dict[str, Any]], rows: list[dict[str, Any]]) -> str:
    shown = [one for one in systems if not one["missing"]]
    ours = {True: " class=ours", False: ""}
    head = "".join(f'<th scope="col"{ours[one["ours"]]}>{escape(one["label"])}</th>' for one in shown)
    return (
        '<div class="wide"><table class="compare"><thead><tr><td></td><td></td>'
        f'{head}<th scope="col">floor</th></tr></thead><tbody>{"".join(_sections(shown, rows))}</tbody></table></div>'
    )


def _sections(systems: list[dict[str, Any]], rows: list[dict[str, Any]]) -> Iterator[str]:
    for section, group in groupby(rows, key=lambda row: row["section"]):
        yield f'<tr class="section"><th colspan="{len(systems) + 3}" scope="rowgroup">{escape(section)}</th></tr>'
        for row in group:
            cells = "".join(_cell(row["cells"].get(one["name"]), one["ours"]) for one in systems)
            bar = f"<small>{escape(row['bar']['text'])}</small>" if row["bar"] else ""
            floor = "" if row["floor"] is None else number(row["floor"])
            yield (
                f'<tr{" class=behind" if row["lost"] else ""}><th scope="row">{escape(row["title"])}{bar}</th>'
                f"<td>{escape(row['unit'])}</td>{cells}<td>{floor}</td></tr>"
            )


def _cell(cell: dict[str, Any] | None, ours: bool) -> str:
    if cell is None or cell["missing"] or cell["median"] is None:
        why = escape((cell and cell["missing"]) or "not measured")
        return f'<td title="{why}">–</td>'
    mark = {True: " class=met", False: " class=missed", None: ""}[cell["met"] if ours else None]
    quartiles = f"quartiles {number(cell['q1'])} … {number(cell['q3'])}, {len(cell['rounds'])} rounds"
    return f'<td{mark} title="{quartiles}">{number(cell["median"])}</td>'


def _absent(systems: list[dict[str, Any]]) -> str:
    return "".join(
        f"<p>{escape(one['label'])} is not in it: {escape(one['missing'])}</p>" for one in systems if one["missing"]
    )
