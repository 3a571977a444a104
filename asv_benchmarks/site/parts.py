"""A part of the page that leads in: what one command measured."""

from __future__ import annotations

import json
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


def copy(sources: list[Path], site: Path) -> list[str]:
    """Those of the files that exist, copied, pages with a way back to the one that leads in; their names."""
    present = [path for path in sources if path.is_file()]
    for path in present:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".html":
            # An icon of their own, or browsers ask the server's root for one.
            text = text.replace("</head>", '<link rel="icon" href="data:,">\n</head>', 1)
            text = text.replace(
                "<main>", '<main>\n<p><a href="index.html" style="color: inherit">All figures</a></p>', 1
            )
        (site / path.name).write_text(text, encoding="utf-8")
    return [path.name for path in present]


def machine_text(machine: dict[str, Any]) -> str:
    """The processor and its cores, of what replay and compare write down."""
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['python']}"


def links(pairs: list[tuple[str, str]]) -> str:
    """Addresses and texts as one line."""
    return '<p class="links">' + " ".join(f'<a href="{escape(to)}">{escape(text)}</a>' for to, text in pairs) + "</p>"
