"""Flame graphs as SVG: one picture for a file of its own and for a page; flamegraph.js zooms and searches in it.

The root is at the top. Boxes are nested ``<svg>`` elements placed in percents, so that one picture fits any width and a
zoom changes two numbers of a box; libraries (d3-flame-graph, speedscope) draw in a browser only, and would leave the
files without a picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import dropwhile
from pathlib import Path

from profiles import folded, waits
from profiles.folded import Stack

HERE = Path(__file__).parent
ROW = 17
NARROWEST = 0.001
"""Boxes with a smaller share are left out: less than a pixel wide."""
LETTERED = 0.004
"""From that share on a box has its text from the start; a zoom adds it to others."""
COLOURS = {"python": "#9cc3e6", "cython": "#ecd06f", "rust": "#eb9a6d", "native": "#cfcfcf"}
STYLE = (
    ".flames{font:12px system-ui,sans-serif;background:#fff}.flames text{fill:#1d1d1f;pointer-events:none}"
    ".flames .box{cursor:pointer}.flames .box rect{stroke:#fff;stroke-width:.6}.flames .box:focus{outline:none}"
    ".flames .box:focus rect,.flames .box:hover rect{stroke:#1d1d1f;stroke-width:1.4}"
    ".flames .box.found rect{fill:#e43fc4}"
    + "".join(f".flames .{language} rect{{fill:{colour}}}" for language, colour in COLOURS.items())
)


@dataclass
class _Node:
    """A frame below its callers; ``shares``: in each of the recordings that are drawn."""

    shares: list[float]
    children: dict[str, _Node] = field(default_factory=dict)

    @property
    def width(self) -> float:
        return sum(self.shares) / len(self.shares)


@dataclass(frozen=True)
class FlameGraph:
    title: str
    boxes: str
    height: int

    def inline(self) -> str:
        """For a page that has `STYLE` and flamegraph.js."""
        return (
            f'<svg class="flames" width="100%" height="{self.height}" role="img" '
            f'aria-label="{escape(self.title)}">{self.boxes}</svg>'
        )

    def file(self) -> str:
        script = (HERE / "flamegraph.js").read_text(encoding="utf-8")
        height = self.height + 40
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="{height}" viewBox="0 0 1200 {height}">'
            f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
            f'<text x="8" y="17" font-family="system-ui,sans-serif" font-size="14">{escape(self.title)}</text>'
            '<text id="search" x="1192" y="17" text-anchor="end" font-family="system-ui,sans-serif" font-size="12" '
            'cursor="pointer">search</text>'
            f'<svg class="flames" x="0" y="28" width="1200" height="{self.height}">{self.boxes}</svg>'
            f"<script><![CDATA[\n{script}]]></script></svg>\n"
        )


def flame_graph(stacks: Mapping[Stack, int], title: str) -> FlameGraph:
    """One recording; the width is the share of its samples, the colour tells the language."""
    return _draw(title, [without_start(stacks)])


def differential(before: Mapping[Stack, int], after: Mapping[Stack, int], title: str) -> FlameGraph:
    """Two recordings in one picture: the width is the mean of both shares, so that what is lost is still there; red has
    gained, blue has lost. Lines are left out: an edit above a function would make it another."""
    return _draw(title, [without_lines(without_start(stacks)) for stacks in (before, after)])


def without_start(stacks: Mapping[Stack, int]) -> dict[Stack, int]:
    """Without what starts a thread or the interpreter: native frames are not found there in every stack."""
    found: dict[Stack, int] = {}
    for stack, samples in stacks.items():
        own = tuple(dropwhile(_starts, stack)) or stack
        found[own] = found.get(own, 0) + samples
    return found


def _starts(frame: str) -> bool:
    return not waits.is_python(frame) or folded.file(frame) in ("threading.py", "<frozen runpy>")


def without_lines(stacks: Mapping[Stack, int]) -> dict[Stack, int]:
    found: dict[Stack, int] = {}
    for stack, samples in stacks.items():
        bare = tuple(map(without_line, stack))
        found[bare] = found.get(bare, 0) + samples
    return found


def without_line(frame: str) -> str:
    file = folded.file(frame)
    return f"{folded.function(frame)} ({file})" if file else frame


def _draw(title: str, recordings: Sequence[Mapping[Stack, int]]) -> FlameGraph:
    root = _Node([1.0] * len(recordings))
    for at, stacks in enumerate(recordings):
        total = sum(stacks.values())
        for stack, samples in stacks.items():
            node = root
            for frame in stack:
                node = node.children.setdefault(frame, _Node([0.0] * len(recordings)))
                node.shares[at] += samples / total
    boxes: list[str] = []
    rows = 0
    waiting = [("all", root, 0.0, 0)]
    while waiting:
        frame, node, left, row = waiting.pop()
        rows = max(rows, row + 1)
        boxes.append(_box(frame, node, left, row))
        for name, child in sorted(node.children.items()):
            if child.width >= NARROWEST:
                waiting.append((name, child, left, row + 1))
            left += child.width
    return FlameGraph(title, "".join(boxes), rows * ROW)


def _box(frame: str, node: _Node, left: float, row: int) -> str:
    shares = " → ".join(f"{share:.1%}" for share in node.shares)
    text = f'<text x="3" y="12">{escape(folded.function(frame))}</text>' if node.width >= LETTERED else ""
    fill = f' fill="{difference_colour(*node.shares)}"' if len(node.shares) == 2 else ""
    return (
        f'<svg class="box{"" if fill else " " + language(frame)}" x="{left:.3%}" y="{row * ROW}" '
        f'width="{node.width:.3%}" height="{ROW - 1}"><title>{escape(frame)}\n{shares}</title>'
        f'<rect width="100%" height="100%"{fill}/>{text}</svg>'
    )


def language(frame: str) -> str:
    file = frame.rpartition(" (")[2].rstrip(")").partition(":")[0]
    if file.endswith((".rs", ".rs)")) or "_rust" in file or "rustc" in file:
        return "rust"
    if file.endswith((".pyx", ".pxd")) or "cython_impl" in file:
        return "cython"
    return "python" if file.endswith(".py") or frame.startswith(("<", "all")) else "native"


def difference_colour(before: float, after: float) -> str:
    """White: as much; red: a larger share; blue: a smaller one. Full from 10 points on, or if one has none of it."""
    strength = min(1.0, abs(after - before) / 0.1)
    if not before or not after:
        strength = max(strength, 0.45)
    faded = round(255 - 115 * strength)
    return f"#ff{faded:02x}{faded:02x}" if after > before else f"#{faded:02x}{faded:02x}ff"
