"""The results that this repository keeps: the history profile of chosen commits, in ``asv_benchmarks/history``.

    python -m asv_benchmarks.history keep MACHINE    from .asv/results to history, what the history profile selects
    python -m asv_benchmarks.history restore         from history to .asv/results, what is not there: for asv's commands

The files are asv's own. MACHINE is the name that the results were measured under (``--machine``), and becomes public.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from itertools import product
from pathlib import Path
from typing import Any

from asv_benchmarks.console import ending, open_missing_streams
from asv_benchmarks.machines import plain
from asv_benchmarks.selections import HISTORY, regexes

FOLDER = Path(__file__).resolve().parent
KEPT = FOLDER / "history"
RESULTS = FOLDER.parent / ".asv" / "results"
BENCHMARKS = "benchmarks.json"
_PER_COMBINATION = (
    "result",
    "stats_ci_99_a",
    "stats_ci_99_b",
    "stats_q_25",
    "stats_q_75",
    "stats_number",
    "stats_repeat",
)


def keep(machine: str, results: Path = RESULTS, kept: Path = KEPT) -> int:
    """How many commits were kept. FileNotFoundError if there are no results under that name; ValueError: no JSON."""
    source, target = results / machine, kept / machine
    if not (source / "machine.json").is_file():
        raise FileNotFoundError(
            f"there are no results of a machine {machine!r} in {results}; `make bench-history MACHINE=NAME` makes them"
        )
    target.mkdir(parents=True, exist_ok=True)
    _write(target / "machine.json", _read(source / "machine.json"))
    count = 0
    for path in sorted(source.glob("*.json")):
        if path.name != "machine.json" and (chosen := _chosen(_read(path)))["results"]:
            _write(target / path.name, chosen)
            count += 1
    known = _read(results / BENCHMARKS)
    names = {name for path in kept.glob("*/*.json") for name in _read(path).get("results", {})}
    before = _read(kept / BENCHMARKS) if (kept / BENCHMARKS).is_file() else {}
    described = {name: known.get(name, before.get(name)) for name in sorted(names)}
    _write(kept / BENCHMARKS, {**{name: each for name, each in described.items() if each}, "version": known["version"]})
    return count


def restore(results: Path = RESULTS, kept: Path = KEPT) -> int:
    """How many files were put back. What has been measured here stays."""
    count = 0
    for path in kept.glob("*/*.json"):
        target = results / path.relative_to(kept)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
            count += 1
    if (kept / BENCHMARKS).is_file():
        here = _read(results / BENCHMARKS) if (results / BENCHMARKS).is_file() else {}
        _write(results / BENCHMARKS, {**_read(kept / BENCHMARKS), **here})
    return count


def _chosen(commit: dict[str, Any]) -> dict[str, Any]:
    """What the history profile selects of a commit's results, without single samples and profiles."""
    columns = commit["result_columns"]
    kept: dict[str, list[Any]] = {}
    for name, row in commit["results"].items():
        values = dict(zip(columns, row, strict=False))
        everything = list(product(*values["params"]))
        wanted = [each for each in everything if _selected(f"{name}({', '.join(each)})")]
        if not wanted:
            continue
        # asv finds its way by the parameters' values, so those that nothing wanted has can go.
        values["params"] = [
            [v for v in axis if any(v == each[at] for each in wanted)] for at, axis in enumerate(values["params"])
        ]
        for column in _PER_COMBINATION:
            if values.get(column):
                known = dict(zip(everything, values[column], strict=True))
                values[column] = [known[each] if each in wanted else None for each in product(*values["params"])]
        values["samples"] = values["profile"] = None
        kept[name] = [values.get(column) for column in columns]
    return {**commit, "results": kept}


_REGEXES = [re.compile(regex) for regex in regexes(HISTORY)]


def _selected(name: str) -> bool:
    return any(regex.search(name) for regex in _REGEXES)


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
    return content


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n")


def main(arguments: list[str]) -> int:
    open_missing_streams()
    return ending("history", lambda: _main(arguments))


def _main(arguments: list[str]) -> int:
    if arguments != ["restore"] and (len(arguments) != 2 or arguments[0] != "keep"):
        print("usage: python -m asv_benchmarks.history keep MACHINE | restore", file=sys.stderr)
        return 2
    try:
        if arguments == ["restore"]:
            said = f"the kept history is among the results: {restore()} files were missing there"
        else:
            said = f"{keep(plain(arguments[1]))} commits of {arguments[1]} are in {KEPT.relative_to(FOLDER.parent)}"
    except (OSError, ValueError) as problem:
        reason = str(problem)
        if isinstance(problem, OSError) and problem.filename:
            reason = f"{problem.filename}: {problem.strerror}"
        print(f"history: {reason}", file=sys.stderr)
        return 1
    print(said)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
