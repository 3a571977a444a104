"""The tables of docs/ABLATIONS.md, and the figures in its verdicts, from what criterion wrote.

    python table.py TARGET/criterion                  prints every table that was measured
    python table.py TARGET/criterion --page PAGE.md   puts each between its markers in that page

criterion keeps a folder for each benchmark, with `new/benchmark.json` (its names) and `new/estimates.json` (nanoseconds
for each call). Its group becomes a table, its function a row, its parameter a column; rows and columns stand in the
order in which they were measured. A cell shows the median and its confidence interval; the least of a column is bold.

A verdict says how many times as much one row takes as another, between

    <!-- times: TABLE | ROW / ROW --> and <!-- end -->

over all columns that both have; with "percent" as a percentage. The second row may be one of another table (TABLE | ROW
/ TABLE | ROW), " @ COLUMN; COLUMN" at the end takes these columns alone, and names may be shell patterns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path

MARKERS = re.compile(r"(<!-- table: (?P<name>[^\n]*?) -->\n).*?(<!-- end of table -->)", re.DOTALL)
SAID = re.compile(r"(<!-- (?P<unit>times|percent): (?P<what>[^>]*?) -->)[^<]*(<!-- end -->)")
MACHINE = "the machine"
NOISE = "noise"


class Unusable(Exception):
    """A file that cannot be used; the message is one sentence for whoever called."""


@dataclass(frozen=True)
class Estimate:
    """One benchmark: its names, and the median with the bounds of its confidence interval, in ns (or bytes)."""

    group: str
    row: str
    column: str
    median: float
    low: float
    high: float
    measured: float  # when, in seconds since the epoch


def read(folder: Path) -> list[Estimate]:
    """All estimates below `folder`, in the order of measuring. Raises Unusable if there is none, or one is broken."""
    estimates = []
    for path in folder.glob("**/new/estimates.json"):
        try:
            names = json.loads(path.with_name("benchmark.json").read_text(encoding="utf-8"))
            median = json.loads(path.read_text(encoding="utf-8"))["median"]
            interval = median["confidence_interval"]
            # A call that does the same for many keys is shown for one of them.
            each = (names["throughput"] or {}).get("Elements", 1)
            estimate = Estimate(
                names["group_id"],
                names["function_id"] or "",
                names["value_str"] or "",
                float(median["point_estimate"]) / each,
                float(interval["lower_bound"]) / each,
                float(interval["upper_bound"]) / each,
                path.stat().st_mtime,
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Unusable(f"{path} is not an estimate of criterion: {error!r}.") from error
        estimates.append(estimate)
    if not estimates:
        raise Unusable(f"Nothing was measured: there is no new/estimates.json below {folder}.")
    return sorted(estimates, key=lambda estimate: estimate.measured)


def in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def figure(value: float) -> str:
    """Three significant digits, and the thousands apart."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if value >= 10 else 2}f}"


def table(estimates: Sequence[Estimate]) -> str:
    """The Markdown table of one group."""
    columns = in_order(estimate.column for estimate in estimates)
    cells = {(estimate.row, estimate.column): estimate for estimate in estimates}
    least = {column: min(e.median for e in estimates if e.column == column) for column in columns}

    def cell(estimate: Estimate | None) -> str:
        if estimate is None:
            return "–"
        median, low, high = figure(estimate.median), figure(estimate.low), figure(estimate.high)
        best = f"**{median}**" if estimate.median == least[estimate.column] else median
        # What was counted has no interval.
        return best if estimate.low == estimate.high else f"{best} [{low}, {high}]"

    lines = [["", *columns], ["---", *("---:" for _ in columns)]]
    for row in in_order(estimate.row for estimate in estimates):
        lines.append([row, *(cell(cells.get((row, column))) for column in columns)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def machine(estimates: Sequence[Estimate], command: str) -> str:
    """When and where it was measured, and how much two measurements of the same work differ."""
    date = datetime.fromtimestamp(estimates[-1].measured, timezone.utc).strftime("%d %B %Y")
    model = re.search(r"^model name\s*: (.*)$", cpu_info(), re.MULTILINE)
    cpu = f"{model[1] if model else platform.processor() or 'unknown CPU'}, {os.cpu_count()} cores"
    lines = [f"Measured on {date} with `{command}`: {cpu}, {platform.system()} {platform.release()}.\n"]
    probes = [estimate for estimate in estimates if estimate.group == NOISE]
    for row in in_order(estimate.row for estimate in probes):
        medians = [estimate.median for estimate in probes if estimate.row == row]
        low, high = min(medians), max(medians)
        lines.append(
            f"How noisy it was: {row}, measured at the beginning of each of {len(medians)} parts, took between "
            f"{figure(low)} and {figure(high)} ns, a factor of {high / low:.2f}.\n"
        )
    spreads = sorted((e.high - e.low) / e.median for e in estimates if e.group != NOISE and e.high > e.low)
    if not spreads:
        return "\n".join(lines)
    half, most = spreads[len(spreads) // 2], spreads[len(spreads) * 9 // 10]
    lines.append(
        f"Of the {len(spreads)} intervals of 95 %, half are narrower than {half:.1%} of their median, nine in ten than "
        f"{most:.1%}.\n"
    )
    return "\n".join(lines)


def cpu_info() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def ratios(what: str, estimates: Sequence[Estimate]) -> list[float]:
    """What a verdict compares. Raises Unusable if none of it was measured."""
    rows, _, columns = " ".join(what.split()).partition(" @ ")
    above, _, below = (side.split(" | ") for side in rows.partition(" / "))
    found = [
        one.median / other.median
        for one in estimates
        if fnmatchcase(one.group, above[0]) and fnmatchcase(one.row, above[-1])
        if not columns or one.column in columns.split("; ")
        for other in estimates
        if other.column == one.column and fnmatchcase(other.row, below[-1])
        if fnmatchcase(other.group, below[0] if len(below) > 1 else one.group)
    ]
    if not found:
        raise Unusable(f"The page stays as it is: it says something of {what!r}, of which nothing was measured.")
    return found


def said(unit: str, found: Sequence[float]) -> str:
    """The least and the largest in two digits, or one figure if these look alike."""

    def write(value: float) -> str:
        return f"{100 * value:.0f}" if unit == "percent" else f"{float(f'{value:.2g}'):,.4g}"

    ends = " to ".join(in_order(write(value) for value in (min(found), max(found))))
    return f"{ends} %" if unit == "percent" else ends


def fill(page: str, blocks: dict[str, str]) -> str:
    """The page with each block between its markers. Raises Unusable if the markers and the blocks do not fit."""
    wanted = [match["name"] for match in MARKERS.finditer(page)]
    problems = [f"nothing was measured for {name!r}" for name in wanted if name not in blocks]
    problems += [f"the page has no place for {name!r}" for name in blocks if name not in wanted]
    if problems:
        raise Unusable(f"The page stays as it is: {'; '.join(problems)}.")
    return MARKERS.sub(lambda match: f"{match[1]}\n{blocks[match['name']]}\n{match[3]}", page)


def main(arguments: Sequence[str] | None = None) -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where criterion wrote, usually target/criterion")
    parser.add_argument("--page", type=Path, help="the page whose tables are replaced; without it they are printed")
    parser.add_argument("--command", default="cargo bench", help="what was called to measure, for the record")
    given = parser.parse_args(arguments)
    try:
        estimates = read(given.folder)
        groups = {name: [e for e in estimates if e.group == name] for name in in_order(e.group for e in estimates)}
        blocks = {MACHINE: machine(estimates, given.command)}
        blocks |= {name: table(group) for name, group in groups.items() if name != NOISE}
        if given.page is None:
            for name, block in blocks.items():
                head = name if name == MACHINE or "bytes" in name else f"{name} (ns of CPU time)"
                print(f"## {head}\n\n{block}")
        else:
            page = fill(given.page.read_text(encoding="utf-8"), blocks)
            page = SAID.sub(lambda at: f"{at[1]}{said(at['unit'], ratios(at['what'], estimates))}{at[4]}", page)
            given.page.write_text(page, encoding="utf-8")
    except (Unusable, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
