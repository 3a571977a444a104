"""Tables in the terminal, which fit 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from profiles import rows

_SHARES = ("GIL held by the cache", "by the scheduler", "a matcher waits for the GIL", "for another lock")
_WORK = ("it runs", "look-ups/s", "inserts/s", "p99 of a call", "scheduler keeps")


def tables(summary: dict[str, Any]) -> list[Table]:
    return [
        _table(
            summary,
            "Who holds the GIL, who runs, who waits",
            "sampled by py-spy, but the look-ups: nobody looked on then",
            *_chosen("matchers", *_SHARES, "look-ups/s"),
        ),
        _table(
            summary,
            "What gets done, unprofiled",
            "it: a matcher; scheduler keeps: of its speed without any other thread",
            *_chosen("matchers", *_WORK),
        ),
        _table(
            summary,
            "What the sampling cost",
            "look-ups a second while sampled, beside those of the unprofiled window",
            rows.COST_COLUMNS,
            rows.cost_row,
        ),
    ]


def _chosen(*columns: str) -> tuple[Sequence[str], Callable[[dict[str, Any]], list[str]]]:
    """Some columns of the whole row."""
    places = [rows.COLUMNS.index(column) for column in columns]
    return columns, lambda run: [rows.row(run)[place] for place in places]


def _table(
    summary: dict[str, Any],
    title: str,
    caption: str,
    columns: Sequence[str],
    cells: Callable[[dict[str, Any]], list[str]],
) -> Table:
    shown = plain(title, caption, ("", *columns))
    for name, runs in rows.by_implementation(summary).items():
        for number, run in enumerate(runs):
            shown.add_row("" if number else name, *cells(run), end_section=number == len(runs) - 1)
    return shown


def plain(title: str, caption: str, columns: Sequence[str], words: Sequence[str] = ("",)) -> Table:
    """An empty table; ``words``: the columns that hold words, not figures."""
    shown = Table(title=title, caption=caption, box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        width = max(map(len, column.split()), default=1)
        shown.add_column(column, justify="left" if column in words else "right", min_width=width)
    return shown
