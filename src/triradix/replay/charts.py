"""Line charts as inline SVG: no library, nothing loaded. Colours come from the page's style sheet (classes s0, s1 …).

Each chart carries its points as JSON for the page's script, which shows the values under the pointer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 400, 236
_RIGHT, _TOP, _BOTTOM = 8, 8, 24
_CHARACTER = 7.7
"""How wide a digit of a label is at most, in the fonts that browsers take."""


@dataclass(frozen=True)
class Series:
    """One curve; a None breaks it. ``style`` is a class of the style sheet."""

    name: str
    style: str
    x: Sequence[float]
    y: Sequence[float | None]


@dataclass(frozen=True)
class Axis:
    """A scale of a chart; ``text`` writes a value for people. A logarithmic one holds positive numbers only.

    ``marks``: where its ticks stand, if not at round numbers.
    """

    low: float
    high: float
    log: bool
    text: Callable[[float], str]
    marks: tuple[float, ...] = ()

    def at(self, value: float) -> float:
        """Where the value lies: 0 … 1 on the axis, cut to it."""
        if self.log:
            value = max(value, self.low)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)

    def ticks(self) -> list[float]:
        if self.marks:
            return list(self.marks)
        if self.log:
            powers = range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)
            step = 1 + (len(powers) - 1) // 5
            return [10.0**power for power in powers[::step]]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 2))
        step *= next(factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= 5)
        first = math.ceil(self.low / step)
        return [tick * step for tick in range(first, math.floor(self.high / step + 1e-9) + 1)]


def log_axis(values: Sequence[float], text: Callable[[float], str]) -> Axis:
    """Whole decades around the values."""
    positive = [value for value in values if value > 0] or [1.0]
    low = math.floor(math.log10(min(positive)) + 1e-9)
    high = max(math.ceil(math.log10(max(positive)) - 1e-9), low + 1)
    return Axis(10.0**low, 10.0**high, True, text)


def line_chart(title: str, series: Sequence[Series], x: Axis, y: Axis, readout: tuple[str, str]) -> str:
    """A figure: title with a legend, the curves, and a line of text for the values under the pointer.

    ``readout``: how that line begins, and how it names a curve's point, with {x}, {y} and {name} to be filled in.
    """
    left = _left(y)
    legend = "".join(f'<span class="key {each.style}">{escape(each.name)}</span>' for each in series)
    points = [
        {
            "name": each.name,
            "points": [
                [round(_px(x, a, left), 1), round(_py(y, b), 1), x.text(a), y.text(b)]
                for a, b in zip(each.x, each.y, strict=True)
                if b is not None
            ],
        }
        for each in series
    ]
    data = escape(
        json.dumps(
            {"head": readout[0], "item": readout[1], "series": points}, separators=(",", ":"), ensure_ascii=False
        )
    )
    curves = "".join(f'<path class="curve {each.style}" d="{_path(each, x, y, left)}"/>' for each in series)
    return (
        f'<figure><figcaption><b>{escape(title)}</b><span class="keys">{legend}</span></figcaption>'
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" '
        f'data-points="{data}">'
        f'{_grid(x, y, left)}{curves}<line class="cursor" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}" x1="-9" x2="-9"/></svg>'
        f'<div class="readout">&#160;</div></figure>'
    )


def _left(y: Axis) -> float:
    """The room that the labels of the y axis need."""
    return max(52.0, 8 + _CHARACTER * max(len(y.text(tick)) for tick in y.ticks()))


def _px(axis: Axis, value: float, left: float) -> float:
    return left + axis.at(value) * (WIDTH - left - _RIGHT)


def _py(axis: Axis, value: float) -> float:
    return HEIGHT - _BOTTOM - axis.at(value) * (HEIGHT - _TOP - _BOTTOM)


def _path(series: Series, x: Axis, y: Axis, left: float) -> str:
    commands: list[str] = []
    drawn = 0  # points since the last break
    for a, b in [*zip(series.x, series.y, strict=True), (0.0, None)]:
        if b is None:
            if drawn == 1:
                commands.append("m-3 0h6")  # a point by itself
            drawn = 0
            continue
        commands.append(f"{'L' if drawn else 'M'}{_px(x, a, left):.1f} {_py(y, b):.1f}")
        drawn += 1
    return "".join(commands)


def _has_room(number: int, ticks: Sequence[float], x: Axis, left: float) -> bool:
    """Whether a label of the x axis stands clear of the last one, which is always there, and turned inwards."""
    last = ticks[-1]
    begins = _px(x, last, left) - _CHARACTER * len(x.text(last))
    tick = ticks[number]
    return number in (0, len(ticks) - 1) or _px(x, tick, left) + _CHARACTER * len(x.text(tick)) / 2 < begins


def _grid(x: Axis, y: Axis, left: float) -> str:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts: list[str] = []
    for tick in y.ticks():
        at = f"{_py(y, tick):.1f}"
        parts.append(f'<line class="grid" x1="{left:.1f}" x2="{right}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="tick" x="{left - 6:.1f}" y="{at}" dy="4" text-anchor="end">{y.text(tick)}</text>')
    ticks = x.ticks()
    for number, tick in enumerate(ticks):
        at = f"{_px(x, tick, left):.1f}"
        # Labels at the edges turn inwards, or they would be cut off.
        anchor = "start" if number == 0 else "end" if x.at(tick) > 0.93 else "middle"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}"/>')
        if _has_room(number, ticks, x, left):
            parts.append(f'<text class="tick" x="{at}" y="{bottom + 17}" text-anchor="{anchor}">{x.text(tick)}</text>')
    return "".join(parts)
