"""The terminal's table: the implementations side by side."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from triradix.replay.recorder import OPERATIONS
from triradix.replay.report import Report


def print_table(report: Report, console: Console) -> None:
    outcome, trace, settings = report["outcome"], report["trace"], report["settings"]
    console.print(
        f"[bold]{trace['name']}[/bold]: {trace['requests']:,} requests, {trace['prompt_tokens']:,} prompt tokens; "
        f"capacity {capacity_text(settings['capacity'])}, page size {settings['page_size']}, {settings['policy']}, "
        f"{settings['concurrency']} in flight",
        highlight=False,
    )
    console.print(outcome_text(outcome), highlight=False)
    if len(report["implementations"]) > 1:
        console.print("All implementations gave the same answers, slot by slot.", highlight=False)
    table = Table("", "µs")
    for name in report["implementations"]:
        table.add_column(name, justify="right")
    for label, what, cells, ends in table_rows(report):
        table.add_row(label, what, *cells, end_section=ends)
    console.print(table)


def table_rows(report: Report) -> list[tuple[str, str, list[str], bool]]:
    """Label, which figure of it, a cell for each implementation, whether a section ends; also for the page."""
    costs = list(report["implementations"].values())
    rows = []
    for name in (*OPERATIONS, "per request"):
        times = [
            each["time_in_cache_per_request"] if name == "per request" else each["operations"][name] for each in costs
        ]
        if not any(each["calls"] for each in times):
            rows.append((name, "", ["no calls" for _ in times], True))
            continue
        for level in ("p50", "p99", "max"):
            label = name if level == "p50" else ""
            rows.append((label, level, [time_text(each[level]) for each in times], level == "max"))
    rows.append(("in all", "", [duration_text(each["time_in_cache_s"] * 1e6) for each in costs], True))
    rows.append(("GC pauses", "count", [f"{each['gc']['pauses']:,}" for each in costs], False))
    rows.append(("", "total", [duration_text(each["gc"]["total_ms"] * 1000) for each in costs], False))
    rows.append(("", "max", [duration_text(each["gc"]["max_ms"] * 1000) for each in costs], True))
    rows.append(("lost the core", "times", [f"{each['preempted']:,}" for each in costs], True))
    rows.append(("RSS", "peak", [bytes_text(each["peak_rss"]) for each in costs], False))
    rows.append(("", "at start", [bytes_text(each["rss_before"]) for each in costs], False))
    rows.append(("", "the tree's", [bytes_text(each["stats"]["memory_bytes"]) for each in costs], True))
    return rows


def outcome_text(outcome: dict[str, Any]) -> str:
    """The hit rates and what else all implementations have in common."""
    parts = [f"Hit rate {outcome['hit_rate_tokens']:.1%} of tokens"]
    if outcome["hit_rate_blocks"] is not None:
        parts[0] += f", {outcome['hit_rate_blocks']:.1%} of blocks"
        ideal = outcome["ideal"]
        parts[0] += f" (without bound {ideal['tokens']:.1%} and {ideal['blocks']:.1%})"
    parts.append(f"{outcome['evicted_tokens']:,} tokens evicted")
    if outcome["did_not_fit"]:
        parts.append(f"{outcome['did_not_fit']:,} requests did not fit the capacity and are left out")
    return "; ".join(parts)


def capacity_text(capacity: int | None) -> str:
    return "without bound" if capacity is None else f"{capacity:,} tokens"


def bytes_text(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.3g} {unit}"


def time_text(microseconds: float | None) -> str:
    """Three digits, in µs."""
    if microseconds is None:
        return "–"
    return f"{microseconds:,.0f}" if microseconds >= 100 else f"{microseconds:.3g}"


def duration_text(microseconds: float | None) -> str:
    """Three digits with the unit that suits."""
    if microseconds is None:
        return "–"
    for unit in ("µs", "ms", "s"):
        if microseconds < 999.5 or unit == "s":
            break
        microseconds /= 1000
    return f"{microseconds:.3g} {unit}"
