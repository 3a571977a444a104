"""asv's pages: ``asv publish`` of every result that there is, kept in the repository or measured here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from asv_benchmarks.site import CannotMake

BENCHMARKS = "benchmarks.json"


def gather(sources: Iterable[Path], into: Path) -> bool:
    """Copy asv's results of all folders into one; of two of a name, that of the later folder. Whether there are any.

    Benchmarks without a result are left out, and so are values of parameters: asv would show an empty graph for each.
    """
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    described: dict[str, Any] = {}
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, into, dirs_exist_ok=True)
        if (source / BENCHMARKS).is_file():
            described |= _read(source / BENCHMARKS)
    results = [path for path in into.glob("*/*.json") if path.name != "machine.json"]
    measured: dict[str, set[tuple[int, str]]] = {}
    for path in results:
        for name, found in _measured(_read(path)):
            measured.setdefault(name, set()).update(found)
    if described:
        kept = {
            name: each if name == "version" else {**each, "params": _only(measured[name], each["params"])}
            for name, each in described.items()
            if name in measured or name == "version"
        }
        (into / BENCHMARKS).write_text(json.dumps(kept), encoding="utf-8")
    return bool(results)


def _measured(results: dict[str, Any]) -> Iterator[tuple[str, set[tuple[int, str]]]]:
    """The benchmarks that have figures in a file of results; for each the values, by axis, that any of them is for."""
    for name, row in results.get("results", {}).items():
        columns = dict(zip(results["result_columns"], row, strict=False))
        combinations = zip(product(*columns["params"]), columns["result"] or (), strict=False)
        found = {
            (axis, value) for each, figure in combinations if figure is not None for axis, value in enumerate(each)
        }
        yield name, found


def _only(measured: set[tuple[int, str]], params: list[list[str]]) -> list[list[str]]:
    return [[value for value in values if (axis, value) in measured] or values for axis, values in enumerate(params)]


def publish(config: Path, sources: Iterable[Path], work: Path, pages: Path) -> dict[str, Any] | None:
    """Run asv over the results in ``sources``; its index.json, None if there are no results.

    ``config``: the project's asv.conf.json; ``work``: a folder for what is needed on the way; ``pages``: where asv's
    pages go.
    """
    if not gather(sources, work / "results"):
        return None
    if not (work / "results" / BENCHMARKS).exists():
        raise CannotMake("there are results of asv, but no benchmarks.json beside them: `make bench` writes it")
    settings = json.loads(config.read_text(encoding="utf-8"))
    settings |= {
        "plugins": [],  # asv would look for them beside the configuration
        "repo": str((config.parent / settings["repo"]).resolve()),
        "results_dir": str(work / "results"),
        "html_dir": str(pages),
        "project_url": "../index.html",
        "show_commit_url": "../commits.html#",
    }
    for branch in settings.get("branches", ()):
        if _git(settings["repo"], "rev-parse", "--verify", "--quiet", branch) is None:
            raise CannotMake(
                f"asv looks at the branch {branch}, which is not in this repository; make it with `git branch`"
            )
    (work / "asv.conf.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "asv", "publish", "--no-pull", "--config", str(work / "asv.conf.json")]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"})
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise CannotMake(f"asv publish failed: {said[-1].strip() if said else f'exit status {done.returncode}'}")
    index: dict[str, Any] = json.loads((pages / "index.json").read_text(encoding="utf-8"))
    return index


def commits(index: dict[str, Any], repository: Path) -> list[tuple[str, str, str]]:
    """Hash, as short as asv's pages show it, day and subject of each commit with results, the newest first."""
    hashes = [index["revision_to_hash"][key] for key in sorted(index["revision_to_hash"], key=int, reverse=True)]
    shown = _git(str(repository), "show", "--no-patch", "--format=%H%x09%as%x09%s", *hashes)
    if shown is None:
        raise CannotMake("there are results of commits that are not in this repository")
    known = {line.split("\t")[0]: line.split("\t", 2) for line in shown.splitlines()}
    return [(full[: index["hash_length"]], known[full][1], known[full][2]) for full in hashes]


def _git(repository: str, *arguments: str) -> str | None:
    """What git says, None if it fails."""
    try:
        done = subprocess.run(["git", "-C", repository, *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        raise CannotMake(
            "git is needed for what was measured over the commits, and is not on PATH; "
            "install it (Debian, Ubuntu: the package git)"
        ) from None
    return done.stdout if done.returncode == 0 else None


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CannotMake(f"asv's results cannot be read: {path.name}: {error}") from None
    return content
