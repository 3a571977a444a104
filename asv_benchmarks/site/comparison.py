"""What ``make compare`` measured: our trees beside their peers, row by row."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from asv_benchmarks.site.parts import Part, copy, links, machine_text, read_json
from triradix.compare.report import number
from triradix.compare.table import speed_text

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
        f"{_lost(rows)}{figures}{_tables(systems, rows)}{_absent(systems)}"
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
        f"Our three{beside}, in turns in one run: medians. Below ours, the ratio to a peer, where 1/5 means a fifth of "
        "its figure, and the quotient to the floor: what memcmp or memcpy takes for the same bytes."
        + (" A quick run: do not read much into a single figure." if quick else "")
    )


def _lost(rows: list[dict[str, Any]]) -> str:
    behind = [row for row in rows if row["lost"]]
    judged = [row for row in rows if any(cell["met"] is not None for cell in row["cells"].values())]
    if not judged:
        return ""
    if not behind:
        return f"<p>Ours lose in none of {len(judged)} rows.</p>"
    items = (f"<li><b>{escape(row['title'])}</b> {escape('; '.join(row['lost']))}</li>" for row in behind)
    return (
        f'<details class="lost" open><summary>Where ours lose: {len(behind)} of {len(rows)} rows</summary>'
        f"<ul>{''.join(items)}</ul></details>"
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


def _tables(systems: list[dict[str, Any]], rows: list[dict[str, Any]]) -> str:
    sections: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        sections.setdefault(row["section"], []).append(row)
    return "".join(_table(section, systems, rows) for section, rows in sections.items())


def _table(section: str, systems: list[dict[str, Any]], rows: list[dict[str, Any]]) -> str:
    """A section. One that no system takes part in, such as what the machine itself takes, is folded up."""
    shown = [one for one in systems if any(_measured(row["cells"].get(one["name"])) for row in rows)]
    ours = {True: " class=ours", False: ""}
    head = "".join(f'<th scope="col"{ours[one["ours"]]}>{escape(one["label"])}</th>' for one in shown)
    return (
        f"<details{' open' if shown else ''}><summary>{escape(section)}</summary>"
        f'<div class="wide"><table class="plain compare"><thead><tr><td></td>{head}<th scope="col">floor</th>'
        f"</tr></thead><tbody>{''.join(_row(row, shown) for row in rows)}</tbody></table></div></details>"
    )


def _row(row: dict[str, Any], systems: list[dict[str, Any]]) -> str:
    bar = f"<small>{escape(row['bar']['text'])}</small>" if row["bar"] else ""
    cells = "".join(_cell(row, one) for one in systems)
    floor = "" if row["floor"] is None else number(row["floor"])
    return f'<tr><th scope="row">{escape(row["title"])}, {escape(row["unit"])}{bar}</th>{cells}<td>{floor}</td></tr>'


def _cell(row: dict[str, Any], system: dict[str, Any]) -> str:
    cell = row["cells"].get(system["name"])
    if not _measured(cell):
        why = (cell and cell["missing"]) or "not measured"
        return f'<td title="{escape(why)}">–</td>'
    mark = {True: " ✓", False: " ✗", None: ""}[cell["met"]]
    style = {True: " class=met", False: " class=missed", None: ""}[cell["met"]]
    quartiles = f"quartiles {number(cell['q1'])} … {number(cell['q3'])}, {len(cell['rounds'])} rounds"
    ratio = f"<small>{speed_text(cell['ratio']['median'], row['lower_is_better'])}</small>" if cell["ratio"] else ""
    quotient = f"<small>{number(cell['quotient'])} × floor</small>" if cell["quotient"] is not None else ""
    return f'<td title="{quartiles}"><span{style}>{number(cell["median"])}{mark}</span>{ratio}{quotient}</td>'


def _measured(cell: dict[str, Any] | None) -> Any:
    return cell is not None and cell["median"] is not None


def _absent(systems: list[dict[str, Any]]) -> str:
    return "".join(
        f"<p>{escape(one['label'])} is not in it: {escape(one['missing'])}</p>" for one in systems if one["missing"]
    )
