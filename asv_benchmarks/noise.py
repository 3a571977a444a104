"""How much figures differ when nothing has changed, and the thresholds that follow.

    python -m asv_benchmarks.noise measure RUNS [--profile history|short] [--machine NAME]
    python -m asv_benchmarks.noise show RESULT.json …

``measure`` runs a profile on HEAD that many times, one after the other, keeps asv's result of each in .asv/noise and
shows them. ``show`` takes such files, of one commit. The spread of a figure is its largest value over the median of all
runs, less one: how much slower it may look by mistake. The threshold of a module is the spread that nine in ten of its
figures stay below, rounded up to a twentieth and at least 0.05.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil, isnan
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from asv_benchmarks import bench
from asv_benchmarks.console import ending, open_missing_streams
from asv_benchmarks.history import RESULTS

NOISE = RESULTS.parent / "noise"


class Spread(NamedTuple):
    """Of the figures of a class, as fractions."""

    figures: int
    median: float
    nine_in_ten: float
    largest: float

    @property
    def threshold(self) -> float:
        return max(0.05, ceil(round(20 * self.nine_in_ten, 6)) / 20)


def figures(result: Mapping[str, Any]) -> dict[str, float]:
    """By ``module.Class.method(parameter, …)``, of one of asv's results; what failed is left out."""
    found: dict[str, float] = {}
    for name, row in result["results"].items():
        values = dict(zip(result["result_columns"], row, strict=False))
        for parameters, value in zip(product(*values["params"]), values["result"] or (), strict=False):
            if value is not None and not isnan(value):
                found[f"{name}({', '.join(parameters)})"] = value
    return found


def spreads(results: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Spread]:
    """By (module, implementation), and (module, "all"), of the figures that every result has.

    ValueError: less than two results, or two commits.
    """
    if len(results) < 2:
        raise ValueError("a spread needs two runs or more")
    if len({result["commit_hash"] for result in results}) > 1:
        raise ValueError("the results are of different commits: their differences are not noise alone")
    runs = [figures(result) for result in results]
    grouped: dict[tuple[str, str], list[float]] = defaultdict(list)
    for name in sorted(set.intersection(*map(set, runs))):
        values = [run[name] for run in runs]
        if min(values) > 0:
            implementation = name.partition("(")[2].split(",")[0].strip("'()")
            for group in (implementation, "all"):
                grouped[name.split(".")[0], group].append(max(values) / median(values) - 1)
    return {key: _spread(values) for key, values in grouped.items()}


def _spread(values: list[float]) -> Spread:
    nine_in_ten = quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else values[0]
    return Spread(len(values), median(values), nine_in_ten, max(values))


def table(found: Mapping[tuple[str, str], Spread]) -> str:
    lines = [
        f"{'module':<12}{'implementation':<16}{'figures':>8}{'median':>9}{'9 in 10':>9}{'largest':>9}{'threshold':>11}"
    ]
    for (module, implementation), each in sorted(found.items()):
        shares = "".join(f"{share:>9.1%}" for share in (each.median, each.nine_in_ten, each.largest))
        lines.append(f"{module:<12}{implementation:<16}{each.figures:>8}{shares}{each.threshold:>11.2f}")
    return "\n".join(lines)


def thresholds(found: Mapping[tuple[str, str], Spread]) -> dict[str, float]:
    """As asv.conf.json's ``regressions_thresholds`` wants them."""
    return {f"^{module}\\.": each.threshold for (module, group), each in sorted(found.items()) if group == "all"}


def _measure(runs: int, profile: str, machine: str | None) -> list[Path]:
    commit, name = bench.commits(["HEAD"])[0], bench.machine_name(machine)
    bench.make_folder(NOISE)
    kept = []
    for run in range(1, runs + 1):
        if code := bench.main([profile, "HEAD", "--machine", name]):
            raise ValueError(f"run {run} ended with exit code {code}")
        (result,) = (RESULTS / name).glob(f"{commit[:8]}-*.json")
        kept.append(Path(shutil.copy(result, NOISE / f"{commit[:8]}-{profile}-{run}.json")))
    return kept


def _read(path: Path) -> dict[str, Any]:
    try:
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        result["commit_hash"], figures(result)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{path} is no result of asv") from None
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    open_missing_streams()
    return ending("noise", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="noise", description="How much figures differ when nothing has changed.")
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("measure")
    measure.add_argument("runs", type=int)
    measure.add_argument("--profile", choices=("history", "short"), default="history")
    measure.add_argument("--machine", metavar="NAME")
    commands.add_parser("show").add_argument("files", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    try:
        if options.command == "measure":
            options.files = _measure(options.runs, options.profile, options.machine)
        found = spreads([_read(path) for path in options.files])
    except (OSError, ValueError, bench.Problem) as problem:
        print(f"noise: {problem}", file=sys.stderr)
        return 1
    print(table(found))
    print(json.dumps({"regressions_thresholds": thresholds(found)}, indent=4))
    return 0


if __name__ == "__main__":
    sys.exit(main())
