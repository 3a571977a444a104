"""What ``make profile`` recorded: who holds the GIL while threads share one cache."""

from __future__ import annotations

import shutil
from dataclasses import replace
from html import escape
from pathlib import Path

from asv_benchmarks.site.parts import Part, links, machine_text, read_json
from profiles import rows
from profiles.report import CannotReport, report, table
from profiles.words import sentences

EMPTY = Part("gil", "Who holds the GIL", "make profile")


def gil_part(made: Path, site: Path) -> Part:
    recorded = made / "profiles"
    summary = read_json(recorded / "summary.json", EMPTY.command)
    if summary is None:
        return EMPTY
    numbers = [run["matchers"] for run in summary["runs"]]
    pictures = []
    (site / "profiles").mkdir(parents=True, exist_ok=True)
    for name, runs in rows.by_implementation(summary).items():
        picture = recorded / f"{runs[0]['recordings']['gil']['name']}.svg"
        if picture.is_file():
            shutil.copyfile(picture, site / "profiles" / f"{name}.svg")
            pictures.append(_picture(name))
    ways = []
    try:
        whole = report(recorded)
    except CannotReport:
        pass  # without the stacks there are the figures
    else:
        back = '<main>\n<p><a href="../index.html" style="color: inherit">All figures</a></p>'
        (site / "profiles" / "report.html").write_text(whole.replace("<main>", back, 1), encoding="utf-8")
        ways.append(
            ("profiles/report.html", "Every flame graph, the differences, the curves, and the collector's pauses")
        )
    said = "".join(
        f"<li>{escape(sentence)}</li>" for sentence in sentences(summary)[: len(rows.by_implementation(summary))]
    )
    lines = [
        (f"{run['implementation']}", rows.row(run))
        for run in summary["runs"]
        if run["matchers"] in (min(numbers), max(numbers))
    ]
    body = (
        f"<p>Threads match, {rows.keys_text(summary['load']['batch'])}, one inserts and evicts, and one stands for the "
        f"engine's own Python code. py-spy says who holds the GIL; work was counted while nobody looked on.</p>"
        f"<ul>{said}</ul>{table(rows.COLUMNS, lines, rows.GROUPS)}"
        f'<div class="figures">{"".join(pictures)}</div>{links(ways)}'
    )
    facts = {
        "measured": summary["created"][:10],
        "commit": summary["commit"] or "",
        "machine": machine_text(summary["machine"]),
    }
    return replace(EMPTY, body=body, made=facts)


def _picture(name: str) -> str:
    address = f"profiles/{escape(name)}.svg"
    return (
        f'<figure><figcaption><b>{escape(name)}: what holds it</b></figcaption><a href="{address}">'
        f'<img src="{address}" alt="Flame graph of the threads that hold the GIL: {escape(name)}">'
        "</a></figure>"
    )
