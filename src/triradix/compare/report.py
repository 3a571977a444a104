"""From rounds to one plain mapping: what the terminal, the JSON file and the page show.

A cell's ``ratio`` is its figure ÷ that of ``versus``, paired round by round; its ``bars`` are those that this run can
judge, and a row's ``bar`` is the first of them. ``quotient`` is the figure ÷ the floor.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

import triradix
from triradix.compare.driver import Measured, Run
from triradix.compare.row import Bar, Row, Scale, Work
from triradix.compare.statistics import paired_ratio, quartiles
from triradix.compare.systems import System
from triradix.provenance import commit, machine

Report = dict[str, Any]

PEER = {"rust": "sglang-rust-raw", "cython": "rust", "reference": "sglang-py"}
"""What a figure of ours stands beside, where no bar says otherwise."""
ITSELF = "×"
"""The unit of rows that hold a system against itself: its figure says nothing beside another's."""
FAILED = "has no figure:"
FLOOR_TIMES, FLOOR_PLUS_NS = 1.35, 150.0
NANOSECONDS = {"ns": 1.0, "µs": 1e3, "ms": 1e6}


def make_report(works: Sequence[Work], systems: Sequence[System], scale: Scale, run: Run, command: str) -> Report:
    labels = {system.name: system.label for system in systems}
    return {
        "schema": 1,
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": commit(),
        "triradix": triradix.__version__,
        "command": command,
        "quick": scale.name == "quick",
        "rounds": scale.rounds,
        "pinned": run.pinned,
        "load": run.load,
        "machine": machine(),
        "systems": [
            {
                "name": system.name,
                "label": system.label,
                "version": run.versions.get(system.name, ""),
                "ours": system.ours,
                "missing": run.missing.get(system.name),
            }
            for system in systems
        ],
        "floor_missing": run.missing.get("floor"),
        "rows": [
            {**_row(row, run.rows[row.name], systems, labels), "every_core": work.every_core}
            for work in works
            for row in work.rows
        ],
    }


def failed(report: Report) -> list[str]:
    """Sentences about those of ours that could not be measured, or answered differently."""
    sentences = [sentence for row in report["rows"] for sentence in row["lost"] if FAILED in sentence]
    ours = [system for system in report["systems"] if system["ours"] and system["missing"]]
    return sentences + [f"{system['label']} {FAILED} {system['missing']}" for system in ours]


def write_json(report: Report) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


def _row(row: Row, measured: Measured, systems: Sequence[System], labels: dict[str, str]) -> dict[str, Any]:
    bar = next((bar for bar in row.bars if _can_be_judged(bar, measured)), None)
    floor = (
        quartiles(measured.floor)[1] / (1.0 if row.unit == "ns" else NANOSECONDS[row.unit]) if measured.floor else None
    )
    cells, lost = {}, []
    for system in systems:
        if system.name in measured.rounds:
            cells[system.name], sentences = _cell(row, system, measured, floor, labels)
            lost += sentences
        elif system.name in measured.missing:
            cells[system.name] = {**_EMPTY, "missing": measured.missing[system.name]}
            if system.ours and system.name in measured.failed:
                lost.append(f"{system.label} {FAILED} {measured.missing[system.name]}")
    return {
        "name": row.name,
        "title": row.title,
        "section": row.section,
        "unit": row.unit,
        "lower_is_better": row.lower_is_better,
        "parameters": row.parameters,
        "bar": bar and {"system": bar.system, "versus": bar.versus, "ratio": bar.limit, "text": bar.text},
        "floor": floor,
        "cells": cells,
        "lost": lost,
    }


def _can_be_judged(bar: Bar, measured: Measured) -> bool:
    return bar.system in measured.rounds and (bar.versus is None or bar.versus in measured.rounds)


_EMPTY: dict[str, Any] = {
    "median": None,
    "q1": None,
    "q3": None,
    "rounds": [],
    "ratio": None,
    "quotient": None,
    "within_floor": None,
    "bars": [],
    "met": None,
    "missing": None,
}


def _cell(
    row: Row, system: System, measured: Measured, floor: float | None, labels: dict[str, str]
) -> tuple[dict[str, Any], list[str]]:
    rounds = measured.rounds[system.name]
    q1, median, q3 = quartiles(rounds)
    cell = {**_EMPTY, "median": median, "q1": q1, "q3": q3, "rounds": rounds}
    if floor is not None:
        cell["quotient"] = median / floor
    if not system.ours:
        return cell, []
    lost, bars = [], []
    for bar in (bar for bar in row.bars if bar.system == system.name and _can_be_judged(bar, measured)):
        missed = _missed(row, bar, median, measured, labels)
        bars.append({"versus": bar.versus, "limit": bar.limit, "met": not missed})
        lost += [missed] if missed else []
    versus = next((bar.versus for bar in row.bars if bar.system == system.name), PEER.get(system.name))
    if row.unit != ITSELF and versus in measured.rounds and any(measured.rounds[versus]):
        ratio, low, high = paired_ratio(rounds, measured.rounds[versus])
        cell["ratio"] = {"versus": versus, "median": ratio, "low": low, "high": high}
    if floor is not None and row.floor is not None and row.floor.judged and system.name in ("rust", "cython"):
        plus = FLOOR_PLUS_NS * row.floor.matches
        limit = FLOOR_TIMES * floor + plus / NANOSECONDS[row.unit]
        cell["within_floor"] = median <= limit
        if median > limit:
            taken = apart(median, [limit], lambda value, digits: amount(value, row.unit, digits))
            lost.append(
                f"{system.label} takes {taken}, more than {amount(limit, row.unit)}: "
                f"{FLOOR_TIMES} × the floor of {amount(floor, row.unit)} + {plus:,.0f} ns"
            )
    cell["bars"] = bars
    cell["met"] = all(bar["met"] for bar in bars) if bars else None
    lost += _behind_peers(row, system, measured, labels)
    return cell, lost


def _missed(row: Row, bar: Bar, median: float, measured: Measured, labels: dict[str, str]) -> str:
    """What is wrong; empty if the bar is met."""
    who = labels[bar.system]
    if bar.versus is None:
        met = median >= bar.limit if bar.at_least else median <= bar.limit
        found = apart(median, [bar.limit], lambda value, digits: amount(value, row.unit, digits))
        return "" if met else f"{who}: {found}; the bar: {bar.text}"
    rounds, theirs = measured.rounds[bar.system], measured.rounds[bar.versus]
    if not any(theirs):  # a peer that takes nothing at all
        return "" if median == 0 else f"{who}: {amount(median, row.unit)}; {labels[bar.versus]}: none"
    ratio, low, high = paired_ratio(rounds, theirs)
    slack = bar.slack is not None and median - quartiles(theirs)[1] <= bar.slack
    if ratio <= bar.limit or slack:
        return ""
    found, least, most = (apart(value, [bar.limit], speed_text) for value in (ratio, low, high))
    beyond = f"{labels[bar.versus]} takes, more than {speed_text(bar.limit)}"
    return f"{who} takes {found} ({least}–{most}) of what {beyond}; the bar: {bar.text}"


def _behind_peers(row: Row, system: System, measured: Measured, labels: dict[str, str]) -> list[str]:
    """A peer that is better. The reference, plain Python, is held against SGLang's Python alone."""
    if row.unit == ITSELF:
        return []
    lost = []
    told = {bar.versus for bar in row.bars if bar.system == system.name and bar.limit == 1}
    for peer in measured.rounds:
        if peer in triradix.IMPLEMENTATIONS or peer == system.name or not labels[peer]:
            continue
        if peer in told or (system.name == "reference" and peer != PEER["reference"]):
            continue
        ours, theirs = measured.rounds[system.name], measured.rounds[peer]
        if not any(theirs):
            if any(ours) and row.lower_is_better:
                lost.append(f"{system.label} is behind {labels[peer]}, which takes nothing")
            continue
        ratio, _, _ = paired_ratio(ours, theirs)
        if ratio > 1 if row.lower_is_better else ratio < 1:
            lost.append(f"{system.label} is behind {labels[peer]}: {apart(ratio, [1.0], speed_text)} its figure")
    return lost


def number(value: float, digits: int = 3) -> str:
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def amount(value: float, unit: str, digits: int = 3) -> str:
    """With the unit, and small times in ns."""
    small = unit == "µs" and value < 1
    return f"{number(value * 1000, digits)} ns" if small else f"{number(value, digits)} {unit}"


def speed_text(ratio: float, digits: int = 3, lower_is_better: bool = True) -> str:
    """A ratio for people: 1.25× or 1/3.82; where more is better, never a fraction."""
    if not lower_is_better or ratio >= 1 or ratio <= 0:
        return f"{ratio:.{digits - 1}f}×"
    return f"1/{1 / ratio:.{digits}g}"


def apart(value: float, limits: Sequence[float], write: Callable[[float, int], str]) -> str:
    """The value as ``write`` writes it, in as many digits (3, mostly) as it takes to look different from the limits."""
    return next(
        (
            write(value, digits)
            for digits in range(3, 9)
            if all(write(value, digits) != write(limit, digits) for limit in limits)
        ),
        write(value, 9),
    )
