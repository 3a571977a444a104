"""What ``make profile`` recorded: who holds the GIL while threads share one cache."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from typing import Any

from asv_benchmarks.site.parts import Part, read_json

EMPTY = Part("gil", "Who holds the GIL", "make profile")


def gil_part(made: Path, site: Path) -> Part:
    path = made / "profiles" / "summary.json"
    summary = read_json(path, EMPTY.command)
    if summary is None:
        return EMPTY
    load, measured = summary["load"], summary["implementations"]
    rows, pictures = [], []
    for name, one in measured.items():
        rows.append(_row(name, one))
        picture = made / "profiles" / f"{name}.svg"
        if picture.is_file():
            (site / "profiles").mkdir(parents=True, exist_ok=True)
            shutil.copyfile(picture, site / "profiles" / picture.name)
            pictures.append(_picture(name))
    body = (
        f"<p>{load['matchers']} threads match in batches of {load['batch']}, one inserts and evicts, and one stands "
        "for the engine's own Python code. The less the cache holds the GIL, the more of its speed that one keeps. "
        "py-spy says who holds it; what gets done was counted while nobody looked on.</p>"
        '<div class="wide"><table class="plain gil"><thead>'
        '<tr><td></td><th scope="colgroup" colspan="2">sampled by py-spy</th>'
        '<th scope="colgroup" colspan="3">not profiled</th></tr>'
        '<tr><td></td><th scope="col">GIL held by the cache</th><th scope="col">by the engine</th>'
        '<th scope="col">the engine keeps</th><th scope="col">matches/s</th>'
        f'<th scope="col">inserts/s</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f'<div class="figures">{"".join(pictures)}</div>'
    )
    written = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    machine = summary.get("machine")
    facts = {
        "measured": summary.get("created", written.isoformat())[:10],
        "commit": summary.get("commit", "")[:8],
        "machine": f"{machine['cpu']}, {machine['cores']} cores" if machine else "",
    }
    return replace(EMPTY, body=body, made=facts)


def _row(name: str, one: dict[str, Any]) -> str:
    held, control = one["gil_held"], one["control"]
    cells = (
        f"{held['matchers'] + held['writer']:.0%}",
        f"{held['scheduler']:.0%}",
        f"{control['scheduler/s'] / one['scheduler_alone/s']:.0%}",
        f"{control['matches/s']:,.0f}",
        f"{control['inserts/s']:,.0f}",
    )
    return f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _picture(name: str) -> str:
    address = f"profiles/{escape(name)}.svg"
    return (
        f'<figure><figcaption><b>{escape(name)}: what holds it</b></figcaption><a href="{address}">'
        f'<img src="{address}" alt="Flame graph of the threads that hold the GIL: {escape(name)}">'
        "</a></figure>"
    )
