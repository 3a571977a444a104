"""The figures of a summary, one row for each run, in words: what the terminal, the report and the site show."""

from __future__ import annotations

from typing import Any

from profiles import waits

COLUMNS = (
    "matchers",
    "GIL held by the cache",
    "by the scheduler",
    "a matcher waits for the GIL",
    "for another lock",
    "it runs",
    "look-ups/s",
    "inserts/s",
    "p99 of a call",
    "scheduler keeps",
)
GROUPS = (("", 1), ("sampled by py-spy", 4), ("not profiled", 5))
"""What stands above the columns, and how many."""
COST_COLUMNS = ("matchers", "not profiled", "GIL", "on-CPU, native", "idle, native")
KINDS = ("gil", "cpu", "idle")


def row(run: dict[str, Any]) -> list[str]:
    """The cells below `COLUMNS`; what was done, and its p99, are those of the unprofiled window."""
    control, gil = run["control"], run["recordings"]["gil"]["shares"]
    states = run["recordings"]["idle"]["states"]["matchers"]
    p99 = control["p99"]
    return [
        str(run["matchers"]),
        f"{held_by_cache(run):.0%}",
        f"{gil['scheduler']:.0%}",
        f"{states[waits.GIL]:.0%}",
        f"{states[waits.LOCK]:.0%}",
        f"{control['processor']['matchers']['on']:.0%}",
        f"{control['matches']:,.0f}",
        f"{control['inserts']:,.0f}",
        "none ended" if p99 is None else time_text(p99),
        f"{kept_speed(run):.0%}",
    ]


def cost_row(run: dict[str, Any]) -> list[str]:
    """The cells below `COST_COLUMNS`: look-ups a second in each window, as shares of the unprofiled one."""
    alone = run["control"]["matches"]
    windows = [run["recordings"][kind]["window"]["matches"] for kind in KINDS]
    return [
        str(run["matchers"]),
        f"{alone:,.0f}/s",
        *(f"{matches / alone:.0%}" if alone else "none were made" for matches in windows),
    ]


def held_by_cache(run: dict[str, Any]) -> float:
    """The share of the time in which a matcher or the writer held the GIL."""
    shares = run["recordings"]["gil"]["shares"]
    held: float = shares["matchers"] + shares["writer"]
    return held


def kept_speed(run: dict[str, Any]) -> float:
    """The scheduler's progress beside what it does without any other thread, unprofiled."""
    kept: float = run["control"]["progress"] / run["scheduler_alone"]
    return kept


def matchers_text(number: int) -> str:
    return f"{number} {'matcher' if number == 1 else 'matchers'}"


def keys_text(batch: int) -> str:
    return f"{batch} {'key' if batch == 1 else 'keys'} a call"


def time_text(seconds: float) -> str:
    scales = ((1, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"))
    factor, unit = next((scale for scale in scales if seconds * scale[0] >= 1), scales[-1])
    return f"{seconds * factor:.3g} {unit}"


def by_implementation(summary: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The runs of each, by their number of matchers."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in sorted(summary["runs"], key=lambda run: int(run["matchers"])):
        found.setdefault(run["implementation"], []).append(run)
    return found
