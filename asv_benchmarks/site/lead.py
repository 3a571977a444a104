"""The page that leads in. Its style, and the script behind its charts, are those of the replay's page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from asv_benchmarks.site.libraries import Library
from asv_benchmarks.site.offline import LIBRARIES
from asv_benchmarks.site.parts import Part, between
from triradix import pages

HERE = Path(__file__).parent


def lead_page(parts: Sequence[Part], libraries: Sequence[Library]) -> str:
    return _page(
        "triradix: what the prefix cache costs",
        "lead.html",
        [part.styles for part in parts],
        contents="".join(f'<a href="#{part.name}">{escape(part.title)}</a>' for part in parts),
        parts="".join(map(_section, parts)),
        footer=_credits(libraries),
    )


def commits_page(commits: Sequence[tuple[str, str, str]]) -> str:
    """Where asv's graphs lead to when a point is clicked."""
    rows = "".join(
        f'<tr id="{name}"><th scope="row"><code>{name}</code></th><td>{day}</td><td>{escape(subject)}</td></tr>'
        for name, day, subject in commits
    )
    return _page("triradix: the commits that were measured", "commits.html", rows=rows)


def _page(title: str, content: str, styles: Sequence[str] = (), **filled: str) -> str:
    """A page whose content, with rules of its own before it, stands in a file beside this one."""
    text = (HERE / content).read_text(encoding="utf-8")
    return Template((HERE / "page.html").read_text(encoding="utf-8")).substitute(
        title=title,
        # The page's own rules come last: those of a part must not change it. Each once: parts share some.
        styles="".join(dict.fromkeys([*styles, pages.style()])),
        own=between(text, "<style>", "</style>").lstrip(),
        main=Template(text.partition("</style>\n")[2].rstrip()).substitute(filled),
        script=pages.script(),
    )


def _section(part: Part) -> str:
    return f'<section id="{part.name}"><h2>{escape(part.title)}</h2>{part.body or _absent(part)}{_made(part)}</section>'


def _absent(part: Part) -> str:
    if part.missing:
        return f'<p class="absent">{escape(part.missing)}.</p>'
    command = f"<code>{escape(part.command)}</code>"
    return f'<p class="absent">Not measured yet: {command} does, then <code>make site</code> shows it here.</p>'


def _made(part: Part) -> str:
    if not part.body:
        return ""
    facts = "".join(f"<span>{name}: {escape(fact or 'not recorded')}</span>" for name, fact in part.made.items())
    return f'<p class="made"><span>again with: <code>{escape(part.command)}</code></span>{facts}</p>'


def _credits(libraries: Sequence[Library]) -> str:
    if not libraries:
        return "Nothing on these pages is loaded from the internet."
    names = ", ".join(
        f'<a href="asv/{LIBRARIES}/{one.licence}">{escape(one.name)} {escape(one.version)}</a>' for one in libraries
    )
    return f"Nothing on these pages is loaded from the internet. The graphs are asv's; they use {names}."
