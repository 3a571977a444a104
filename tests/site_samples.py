"""Something to make a site of: a small git repository with results of asv, a comparison, a replay, profiles."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from triradix import IMPLEMENTATIONS

sys.path.insert(0, str(Path(__file__).parent.parent))  # asv_benchmarks and profiles are no installed packages

from profile_samples import make_profiles

from asv_benchmarks.site.make import Places

NAMES = [repr(name) for name in IMPLEMENTATIONS]
BENCHMARKS: dict[str, tuple[str, list[list[str]], list[str]]] = {
    "evict.EvictByPolicy.time_evict_512_tokens": (
        "seconds",
        [NAMES, ["'lru'", "'lfu'"], ["1000", "100000"]],
        ["implementation", "policy", "leaves"],
    ),
    "match.HotMatch.time_one_match": (
        "seconds",
        [NAMES, ["1", "16"], ["1024", "131072"]],
        ["implementation", "page size", "tokens"],
    ),
    "memory.BytesPerToken.track_bytes_per_token": ("bytes", [NAMES, ["'counted'"]], ["implementation", "memory"]),
    "other.Nothing.time_nothing": ("seconds", [], []),
}
COMMITS = 4


def make_samples(folder: Path) -> Places:
    """Everything that a site is made of, below ``folder``; the site would go to ``folder/site``."""
    made = folder / "made"
    made.mkdir()
    config = make_repository(folder / "project")
    make_results(config.parent, folder / "results")
    (made / "compare.json").write_text(json.dumps(comparison()))
    make_replay(made)
    make_profiles(made / "profiles")
    return Places(folder / "site", made, config, (folder / "history", folder / "results"))


def git(repository: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A. Committer", "-c", "user.email=a@example.invalid", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", repository, *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def make_repository(project: Path) -> Path:
    """Some commits, and a configuration of asv beside them; the path of that."""
    project.mkdir(parents=True)
    git(project, "init", "--quiet", "--initial-branch=main")
    for number in range(COMMITS):
        (project / "file").write_text(f"{number}")
        git(project, "add", "file")
        git(project, "commit", "--quiet", "--message", f"Change <number> {number}")
    config = project / "asv.conf.json"
    settings = {"version": 1, "project": "sample", "repo": ".", "branches": ["main"], "benchmark_dir": "benchmarks"}
    config.write_text(json.dumps(settings))
    return config


def make_results(project: Path, results: Path) -> None:
    """What ``asv run`` would have written for each commit, on two machines; the second lacks a benchmark."""
    results.mkdir(parents=True)
    described: dict[str, Any] = {
        name: {"name": name, "unit": unit, "params": params, "param_names": names, "version": "1", "code": "pass"}
        | {"type": "time" if unit == "seconds" else "track"}
        for name, (unit, params, names) in BENCHMARKS.items()
    }
    (results / "benchmarks.json").write_text(json.dumps({**described, "version": 2}))
    dates = git(project, "log", "--reverse", "--format=%H %ct").splitlines()
    for machine in ("anvil", "bellows"):
        make_machine(results / machine, machine, [line.split() for line in dates])


def make_machine(folder: Path, machine: str, commits: list[list[str]]) -> None:
    folder.mkdir()
    facts = {"machine": machine, "arch": "x86_64", "cpu": "A CPU", "num_cpu": "2", "os": "Linux 6", "ram": "8"}
    (folder / "machine.json").write_text(json.dumps({**facts, "version": 1}))
    for number, (commit, date) in enumerate(commits):
        results = {}
        for name, (unit, params, _names) in BENCHMARKS.items():
            if machine == "bellows" and name.startswith("evict"):
                continue
            values = [1e-6 if unit == "seconds" else 1.0]
            for axis in params:
                # The times of evictions lie far apart.
                step = 10 if name.startswith("evict") else 1
                values = [value * (4 + at) * step**at for value in values for at in range(len(axis))]
            values = [value * (1 + 0.05 * number) for value in values]
            results[name] = [values, params, "1"]
        document = {
            "commit_hash": commit,
            "date": int(date) * 1000,
            "env_name": "virtualenv-py3.11",
            "params": {**facts, "python": "3.11"},
            "python": "3.11",
            "requirements": {},
            "env_vars": {},
            "result_columns": ["result", "params", "version"],
            "results": results,
            "durations": {},
            "version": 2,
        }
        (folder / f"{commit[:8]}-virtualenv-py3.11.json").write_text(json.dumps(document))


def comparison() -> dict[str, Any]:
    """Two rows, one of which is lost; a peer that could not be installed."""
    systems: list[dict[str, Any]] = [
        {"name": name, "label": f"{name} (ours)", "version": "0.1.0", "ours": True, "missing": None}
        for name in IMPLEMENTATIONS
    ]
    systems.append({"name": "sglang-rust-raw", "label": "A peer", "version": "1.2", "ours": False, "missing": None})
    systems.append({"name": "dynamo", "label": "Another", "version": "", "ours": False, "missing": "it is <gone>"})
    met: list[Any] = [None, True, False, None]
    rows = [
        {
            "name": f"hot-{name}",
            "title": f"Hot match of {length:,} tokens",
            "section": "Match",
            "unit": "µs",
            "lower_is_better": True,
            "every_core": False,
            "parameters": {"tokens": length},
            "bar": {
                "system": "cython",
                "versus": "sglang-rust-raw",
                "ratio": 0.5,
                "text": "Half of what the peer takes",
            },
            "floor": 1.25,
            "cells": {
                one["name"]: {
                    "median": 12.5 * (at + 1),
                    "q1": 12.0 * (at + 1),
                    "q3": 13.0 * (at + 1),
                    "rounds": [12.5 * (at + 1)] * 9,
                    "ratio": {"versus": "sglang-rust-raw", "median": 0.5, "low": 0.4, "high": 0.6},
                    "quotient": 10.0,
                    "within_floor": None,
                    "bars": [],
                    "met": met[at],
                    "missing": None,
                }
                for at, one in enumerate(systems[:4])
            },
            "lost": [f"rust takes 1.5 times as long as A peer for {length:,} tokens"] if length > 200 else [],
        }
        for name, length in (("128", 128), ("8k", 8192))
    ]
    return {
        "schema": 1,
        "made": "2026-01-02T03:04:05+00:00",
        "commit": "0123456789ab-dirty",
        "command": "triradix compare --quick",
        "quick": True,
        "rounds": 9,
        "pinned": True,
        "load": 0.0,
        "floor_missing": None,
        "machine": {"cpu": "A CPU", "cores": 2, "python": "CPython 3.11", "system": "Linux 6"},
        "systems": systems,
        "rows": rows,
    }


def make_replay(made: Path) -> None:
    command = [sys.executable, "-m", "triradix", "replay", "--requests", "60"]
    command += ["--json", str(made / "replay.json"), "--html", str(made / "replay.html")]
    subprocess.run(command, check=True, capture_output=True)
