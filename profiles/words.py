"""What a summary shows, in plain words: a sentence only where the figures say so."""

from __future__ import annotations

from typing import Any

from profiles import rows, waits

LESS = 0.95
"""Throughput below this share of what fewer threads reached is a loss and no noise."""

QUEUED = 0.2
"""The share of its time that a thread may wait for a processor before that is said."""


def sentences(summary: dict[str, Any]) -> list[str]:
    by_name = rows.by_implementation(summary)
    found = [_first(name, runs[0]) for name, runs in by_name.items()]
    found += [_scaling(name, runs, summary["machine"]["cores"]) for name, runs in by_name.items() if len(runs) > 1]
    found += _share_is_not_all(by_name)
    found += _short_of_processors(summary)
    return found


def _first(name: str, run: dict[str, Any]) -> str:
    states = run["recordings"]["idle"]["states"]["matchers"]
    return (
        f"{name}, {_threads(run)}: the cache's threads held the GIL {rows.held_by_cache(run):.0%} of the time, and the "
        f"scheduler kept {rows.kept_speed(run):.0%} of its speed. {run['control']['matches']:,.0f} look-ups were made "
        f"a second; a matcher spent {states[waits.GIL]:.0%} of its time waiting for the GIL and "
        f"{states[waits.LOCK]:.0%} waiting for another lock."
    )


def _scaling(name: str, runs: list[dict[str, Any]], cores: int) -> str:
    first, last = runs[0], runs[-1]
    one, many = first["control"]["matches"], last["control"]["matches"]
    times = "" if not one else f" ({many / one:.2f} times)"
    changed = (
        f"{name}, from {first['matchers']} to {last['matchers']} matchers: {one:,.0f} → {many:,.0f} look-ups/s{times}"
        f"{_on_what(last)}; inserts meanwhile: {first['control']['inserts']:,.0f} → {last['control']['inserts']:,.0f}/s"
    )
    if one and many / one > cores:
        waited = first["recordings"]["idle"]["states"]["matchers"][waits.GIL]
        changed += (
            f". That is more than {cores} cores account for: with {_threads(first)} a matcher waited {waited:.0%} of "
            "its time for the GIL"
        )
    best = max(runs, key=lambda run: float(run["control"]["matches"]))
    if many < LESS * best["control"]["matches"]:
        states = last["recordings"]["idle"]["states"]["matchers"]
        return (
            f"{changed}. More threads than {best['matchers']} make it slower: at {last['matchers']} each waits "
            f"{states[waits.GIL]:.0%} of its time for the GIL and {states[waits.LOCK]:.0%} for another lock."
        )
    return f"{changed}."


def _on_what(run: dict[str, Any]) -> str:
    short = _queued(run) >= QUEUED
    return ", on fewer free cores than threads: that shortage too is in the figure" if short else ""


def _share_is_not_all(by_name: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Where the least GIL is not the most work."""
    found = []
    firsts = {name: runs[0] for name, runs in by_name.items()}
    least = min(firsts, key=lambda name: rows.held_by_cache(firsts[name]), default=None)
    most = max(firsts, key=lambda name: float(firsts[name]["control"]["matches"]), default=None)
    if least and most and least != most:
        found.append(
            f"A small share of the GIL is no success by itself: with {_threads(firsts[least])} {least} held it least, "
            f"but {most} looked up more."
        )
    return found


def _short_of_processors(summary: dict[str, Any]) -> list[str]:
    """Where threads waited for a processor, and not only for each other."""
    queued = [_queued(run) for run in summary["runs"]]
    if max(queued) < QUEUED:
        return []
    most = min(1, max(queued))
    return [
        f"Processors were short: the scheduler was ready and had none up to {most:.0%} of the time. There are fewer "
        "free cores than threads, and figures differ from run to run."
    ]


def _queued(run: dict[str, Any]) -> float:
    return float(run["control"]["processor"]["scheduler"]["queued"])


def _threads(run: dict[str, Any]) -> str:
    return rows.matchers_text(run["matchers"])
