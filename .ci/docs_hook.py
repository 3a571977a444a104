"""For mkdocs: a link that leaves docs/ leads to a file of the repository, which the site does not hold.

On GitHub it is a link; here it becomes the name of the file. A file that does not exist is a warning, which --strict
makes an error.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

log = logging.getLogger("mkdocs.hooks.docs")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    docs = Path(config["docs_dir"]).resolve()
    root = docs.parent

    def shown(link: re.Match[str]) -> str:
        text, target = link[1], link[2].partition("#")[0]
        path = (docs / page.file.src_uri).parent.joinpath(target).resolve()
        if not target or "://" in target or target.startswith("mailto:") or path.is_relative_to(docs):
            return link[0]
        if not path.is_relative_to(root) or not path.exists():
            log.warning("%s links to %s, which does not exist", page.file.src_uri, target)
            return link[0]
        name = f"`{path.relative_to(root)}`"
        return name if text.strip("`") == name.strip("`") else f"{text} ({name})"

    return re.sub(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)", shown, markdown)
