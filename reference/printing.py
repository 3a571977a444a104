"""The tree drawn for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from triradix.arguments import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from triradix.reference.node import Run
    from triradix.reference.tree import Tree

_SHOWN = 6
"""Tokens of a run that are shown."""

_DEEPEST_INDENT = 40
"""Levels after which a line is not indented further, so that a deep tree takes linear room."""


def drawn(tree: Tree) -> str:
    """A line for each run: its depths, its first tokens, its last mark and its locks."""
    counts = tree.counts
    lines = [f"{counts.total} units in {counts.runs} runs, {counts.protected} protected"]
    for space in tree.spaces.values():
        name = "default namespace" if space.namespace == DEFAULT_NAMESPACE else f"namespace {space.namespace!r}"
        lines.append(name)
        waiting = [(run, 1) for run in reversed(space.root.children.values())]
        while waiting:
            run, level = waiting.pop()
            lines.append("  " * min(level, _DEEPEST_INDENT) + _line(run))
            waiting += [(child, level + 1) for child in reversed(run.children.values())]
    return "\n".join(lines)


def _line(run: Run) -> str:
    units = min(run.end - run.start, _SHOWN)
    tokens = np.frombuffer(run.span.between(run.start, run.start + units), np.uint32).tolist()
    more = ", …" if run.end - run.start > units else ""
    locked = f", locked to {run.locked_end}" if run.locked_end > run.start else ""
    return f"({run.start}, {run.end}] {', '.join(map(str, tokens))}{more} | last {run.last}{locked}"
