"""A part of the page that leads in: what one command measured."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from asv_benchmarks.site import CannotMake


@dataclass(frozen=True)
class Part:
    """``body`` is HTML; empty: it has not been measured, or ``missing`` says why it is not shown."""

    name: str
    title: str
    command: str
    """What measures it."""
    body: str = ""
    missing: str = ""
    made: dict[str, str] = field(default_factory=dict)
    """When, where and from what it was measured."""
    styles: str = ""
    """Rules of the style sheet that the body needs beside those of the page."""


def read_json(path: Path, command: str) -> dict[str, Any] | None:
    """None if there is no such file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CannotMake(f"{path} cannot be read ({error}); `{command}` makes it anew") from None
    if not isinstance(found, dict):
        raise CannotMake(f"{path} holds no JSON object; `{command}` makes it anew")
    return found


def between(page: str, begin: str, end: str) -> str:
    found = re.search(f"{re.escape(begin)}(.*?){re.escape(end)}", page, re.DOTALL)
    assert found, f"a page of triradix has no {begin} … {end} any more"
    return found[1]


def excerpt(page: str, begin: str, end: str) -> str:
    """What stands there on a page, to stand below one of our headings."""
    return between(page, begin, end).replace("<h2>", "<h3>").replace("</h2>", "</h3>")


def write_page(page: str, report: dict[str, Any], path: Path) -> None:
    """The page with a way back to the one that leads in, and the report that it shows beside it."""
    if 'rel="icon"' not in page:
        # Else browsers ask the server's root for one.
        page = page.replace("</head>", '<link rel="icon" href="data:,">\n</head>', 1)
    page = page.replace("<main>", '<main>\n<p><a href="index.html" style="color: inherit">All figures</a></p>', 1)
    path.write_text(page, encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def machine_text(machine: dict[str, Any]) -> str:
    """The processor and its cores, of what replay and compare write down."""
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['python']}"


def links(pairs: list[tuple[str, str]]) -> str:
    """Addresses and texts as one line."""
    return '<p class="links">' + " ".join(f'<a href="{escape(to)}">{escape(text)}</a>' for to, text in pairs) + "</p>"
