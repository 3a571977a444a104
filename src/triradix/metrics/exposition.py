"""Prometheus' text format, without its client: for whoever has a web server already and wants no dependency."""

from __future__ import annotations

from collections.abc import Mapping

from triradix.metrics.families import families
from triradix.protocol import PrefixCache

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def prometheus_text(caches: Mapping[str, PrefixCache]) -> str:
    """The metrics of ``caches`` in the text format 0.0.4, each sample labelled with the cache's name. O(caches).

    Serve it as `CONTENT_TYPE`. TypeError for what is no mapping of names to caches, ValueError for a name with a lone
    surrogate. A cache that raises spoils nothing: see ``triradix_scrape_success``.
    """
    lines = []
    for family in families(caches):
        lines.append(f"# HELP {family.name} {family.help}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for suffix, labels, value in family.samples:
            shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
            lines.append(f"{family.name}{suffix}{{{shown}}} {value!r}")
    return "".join(f"{line}\n" for line in lines)


def _escaped(text: str) -> str:
    return str.__str__(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
