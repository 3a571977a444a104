"""asv's pages made self-contained: they load nothing from other hosts, and work from a folder too (``file://``).

asv fetches its data as JSON, which browsers refuse for pages that are files. So each JSON file becomes a script that
holds the same, and ``offline.js``, loaded after jQuery, answers asv's requests from these scripts. It also has graphs
begin with a logarithmic axis where the values lie far apart; asv's own button changes that.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from asv_benchmarks.site import CannotMake
from asv_benchmarks.site.libraries import Libraries, Library

HERE = Path(__file__).parent
LIBRARIES = "libraries"
OWN = ("offline.js", "offline.css")
FAR_APART = 20
"""How many times the least value the largest is, for a graph to begin with a logarithmic axis."""

_TAG = re.compile(r"<(script|link)\b([^>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*"([^"]*)\"""")
_ELSEWHERE = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
_IN_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?((?:[a-z][a-z0-9+.-]*:)?//[^"')\s;]+)""", re.IGNORECASE)
_IN_SCRIPT = re.compile(r"""["'`]((?:https?:|wss?:)?//[\w.-]+[^"'`]*)""")


def make_self_contained(pages: Path, modules: Path) -> list[Library]:
    """Rewrite what ``asv publish`` wrote to ``pages``, in place; the libraries that were copied there."""
    libraries = Libraries(modules, pages / LIBRARIES)
    index = pages / "index.html"
    index.write_text(rewrite(index.read_text(encoding="utf-8"), libraries), encoding="utf-8")
    # It says that the reader must be online, and nothing leads to it any more.
    (pages / "error.html").unlink(missing_ok=True)
    data_to_scripts(pages)
    for name in OWN:
        shutil.copy(HERE / name, pages / name)
    return libraries.copied()


def rewrite(page: str, libraries: Libraries) -> str:
    """asv's index.html with local copies for what it loads from elsewhere, and with our script and style."""
    own_script = '<script src="data.js"></script>\n    <script src="offline.js"></script>\n    '

    def local(tag: re.Match[str]) -> str:
        kind = tag[1].lower()
        attributes = dict(_ATTRIBUTE.findall(tag[2]))
        name = "src" if kind == "script" else "href"
        address = attributes.get(name, "")
        if not _ELSEWHERE.match(address):
            return tag[0]
        # Browsers check no integrity of files, and refuse them instead: so it is checked here, once, and left out.
        path = f"{LIBRARIES}/{libraries.copy(address, attributes.get('integrity'))}"
        return f'<script src="{path}">' if kind == "script" else f'<link rel="{attributes["rel"]}" href="{path}">'

    page = _TAG.sub(local, page)
    after_jquery = re.compile(r'(<script src="[^"]*/jquery/[^"]*"></script>\s*)')
    page, found = after_jquery.subn(lambda match: match[1] + own_script, page, count=1)
    if not found or "</head>" not in page:
        raise CannotMake("asv's index.html is not as it was: offline.py does not know where its scripts belong")
    page, found = re.subn(r'(<li id="nav-li-")', r'<li><a href="../index.html">All figures</a></li>\n\t\1', page)
    if found != 1:
        raise CannotMake("asv's index.html is not as it was: offline.py does not know where the way back belongs")
    ours = '<meta name="viewport" content="width=device-width, initial-scale=1">\n' + (
        '    <link rel="stylesheet" href="offline.css">\n  '
    )
    return page.replace("</head>", f"  {ours}</head>", 1)


def data_to_scripts(pages: Path) -> None:
    """Each ``NAME.json`` becomes ``NAME.json.js``; ``data.js`` lists them, and graphs whose values lie far apart."""
    names = sorted(path.relative_to(pages).as_posix() for path in pages.rglob("*.json"))
    names = [name for name in names if not name.startswith(f"{LIBRARIES}/")]
    benchmarks = json.loads((pages / "index.json").read_text(encoding="utf-8"))["benchmarks"]
    values: dict[str, list[float]] = {}
    for name in names:
        path = pages / name
        text = path.read_text(encoding="utf-8").strip()
        if name.startswith("graphs/") and path.stem in benchmarks:
            values.setdefault(path.stem, []).extend(_numbers([value for _, value in json.loads(text)]))
        path.with_name(f"{path.name}.js").write_text(f"document.currentScript.data = {text};\n", encoding="utf-8")
        path.unlink()
    far_apart = [name for name, found in values.items() if found and 0 < min(found) * FAR_APART <= max(found)]
    data = (("asvData", names), ("asvFarApart", sorted(far_apart)))
    lines = [f"window.{variable} = {json.dumps(value, ensure_ascii=False)};\n" for variable, value in data]
    (pages / "data.js").write_text("".join(lines), encoding="utf-8")


def _numbers(values: Any) -> Iterator[float]:
    """Of a revision: one, or those of all combinations of parameters, where a missing one is None."""
    for value in values:
        if isinstance(value, list):
            yield from _numbers(value)
        elif value is not None:
            yield float(value)


class _Addresses(HTMLParser):
    """What a page loads by itself. Links to follow (``<a href>``) load nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        for name, value in attrs:
            if name in {"src", "srcset", "data", "poster", "action", "xlink:href"} or (name == "href" and tag != "a"):
                self.found.append(value or "")
            elif name == "style":
                self.found += _IN_STYLE.findall(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.found += _IN_STYLE.findall(data)
        elif self._inside == "script":
            self.found += _IN_SCRIPT.findall(data)


def refuse_other_hosts(site: Path) -> None:
    """Raise if a page, a style or a script (the libraries' apart, whose content is pinned) names another host."""
    for path in sorted(site.rglob("*")):
        if path.suffix not in {".html", ".svg", ".css", ".js"}:
            continue
        inside_library = LIBRARIES in path.relative_to(site).parts
        text = path.read_text(encoding="utf-8")
        if path.suffix in {".html", ".svg"}:
            reader = _Addresses()
            reader.feed(text)
            found = reader.found
        elif path.suffix == ".css":
            found = _IN_STYLE.findall(text)
        elif inside_library or path.name.endswith(".json.js"):
            continue
        else:
            found = _IN_SCRIPT.findall(text)
        elsewhere = [address for address in found if _ELSEWHERE.match(address)]
        if elsewhere:
            raise CannotMake(f"{path.relative_to(site)} refers to another host: {elsewhere[0].strip()}")
