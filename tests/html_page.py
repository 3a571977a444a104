"""What a page of the project holds, for the tests that look at one."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """Notes what the page would load, its balance of tags, its curves and its words."""

    VOID = frozenset({"meta", "br", "line", "link", "path"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.curves = 0
        self.feed(text)
        self.stands_alone = not self.links and not re.search(r"https?:|@import|url\(", text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        links = [(name, value or "") for name, value in attrs if name in ("src", "href", "srcset", "action")]
        self.links += [f"{tag} {name}" for name, value in links if not value.startswith("data:")]
        self.curves += tag == "path"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.curves += tag == "path"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
