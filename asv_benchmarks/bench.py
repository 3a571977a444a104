"""Measure commits with asv: what the ``make bench…`` targets run.

    python -m asv_benchmarks.bench short|full|history [COMMIT | RANGE …]     default: HEAD
    python -m asv_benchmarks.bench compare BASE [COMMIT]                     is COMMIT (default: HEAD) slower than BASE?

asv builds each commit in an environment of its own and measures that build: edits that are not committed are not seen.
One run at a time: a second one in the same clone is refused. asv and its workers end with this process.
Exit codes: 0 all was measured, and nothing became slower; 1 something became slower, or asv could not begin;
2 a part did not build or a benchmark failed, or the arguments cannot be used, or another run is under way;
128 + N stopped by signal N.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

from asv_benchmarks.attached import Stopped, run
from asv_benchmarks.selections import PROFILES, regexes

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
MEASURED = ("src", "reference", "cython_impl", "rust_impl", "setup.py", "pyproject.toml")


class Problem(Exception):
    """Nothing can be measured; the message is one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return _measure(options)
    except Problem as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 2
    except Stopped as stopped:
        print(f"bench: {stopped}", file=sys.stderr)
        return 128 + stopped.number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description="Measure commits with asv.")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--machine", metavar="NAME", help="under which the results are filed (default: the host name)")
    common.add_argument("--bench", action="append", metavar="REGEX", help="these benchmarks, not those of the profile")
    commands = parser.add_subparsers(dest="profile", metavar="PROFILE", required=True)
    for name in PROFILES:
        one = commands.add_parser(name, parents=[common])
        one.add_argument("commits", nargs="*", default=["HEAD"], metavar="COMMIT", help="or a range (default: HEAD)")
    compare = commands.add_parser("compare", parents=[common])
    compare.add_argument("base", metavar="BASE")
    compare.add_argument("commit", nargs="?", default="HEAD", metavar="COMMIT", help="(default: HEAD)")
    return parser


def _measure(options: argparse.Namespace) -> int:
    if find_spec("asv") is None:
        raise Problem("asv is not installed here: `make setup` installs it into .venv")
    check(options.bench or [])
    if options.profile == "compare":
        chosen = commits([options.base, options.commit])
        if len(chosen) == 1:
            raise Problem(f"nothing to compare: {options.base} and {options.commit} are the same commit")
        command = ["continuous", "--factor", str(continuous_factor()), *chosen]
        patterns, hashes = PROFILES["short"], ""
    else:
        chosen = commits(options.commits)
        command, hashes = ["run", "HASHFILE:-"], "\n".join(chosen)
        patterns = PROFILES[options.profile]
    for regex in options.bench or regexes(patterns):
        command += ["--bench", regex]
    with alone(ROOT / ".asv" / "bench.lock") as lock:
        if commits(["HEAD"])[0] in chosen and _git("status", "--porcelain", "--", *MEASURED):
            print("bench: there are edits that are not committed; they are not measured", file=sys.stderr)
        command += ["--interleave-rounds", "--show-stderr", "--machine", describe_machine(options.machine)]
        return asv(command, hashes, lock)


def check(chosen: Sequence[str]) -> None:
    """Problem if one of the ``--bench`` selects nothing: asv would say so only after it has built everything."""
    names = benchmark_names() if chosen else []
    for regex in chosen:
        try:
            found = any(re.search(regex, name) for name in names)
        except re.error as error:
            raise Problem(f"--bench {regex!r} is no regular expression: {error}") from None
        if not found:
            raise Problem(f"--bench {regex!r} selects no benchmark; a name reads {names[0]}")


def benchmark_names() -> list[str]:
    """With their parameters, as asv searches in them."""
    from asv_runner.discovery import list_benchmarks  # type: ignore[import-untyped]

    listed = StringIO()
    list_benchmarks(str(FOLDER / "benchmarks"), listed)
    return [
        f"{each['name']}({', '.join(parameters)})" if parameters else each["name"]
        for each in json.loads(listed.getvalue())
        for parameters in product(*each["params"])
    ]


@contextmanager
def alone(path: Path) -> Iterator[int]:
    """Hold the lock on that file; its descriptor. Problem if another run holds it, or what is left of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Problem(
                f"another run is measuring in this clone (process {file.read()}), and each would spoil the other's "
                "figures: wait for it, or end it"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}")
        file.flush()
        yield file.fileno()


def commits(words: Sequence[str]) -> list[str]:
    """The full hashes that commits and ranges (with ``..``) mean, each once; Problem if there is no such, or none."""
    found: list[str] = []
    for word in words:
        if ".." in word:
            listed = _git("rev-list", "--first-parent", word, "--")
        else:
            listed = _git("rev-parse", "--verify", "--quiet", f"{word}^{{commit}}")
        if listed is None:
            raise Problem(f"there is no commit or range {word!r} in this repository")
        found += listed.split()
    if not found:
        raise Problem(f"nothing to measure: {' '.join(words)} holds no commit")
    return list(dict.fromkeys(found))


def _git(*arguments: str) -> str | None:
    """What git says, None if it fails."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def continuous_factor() -> float:
    """How much slower is slower, from asv.conf.json: asv itself takes it on the command line only."""
    return float(json.loads((FOLDER / "asv.conf.json").read_text())["continuous_factor"])


def describe_machine(name: str | None) -> str:
    """Tell asv what machine this is, so that it need not ask; the name under which its results are filed."""
    from asv.machine import Machine, MachineCollection  # type: ignore[import-untyped]

    facts: dict[str, Any] = Machine.get_defaults()
    facts["machine"] = name or Machine.get_unique_machine_name()
    facts["os"] = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    MachineCollection.save(facts["machine"], facts)
    return str(facts["machine"])


def asv(arguments: Sequence[str], stdin: str, lock: int) -> int:
    """Run asv where its configuration is; its exit code. The lock is held until all that asv has started is gone."""
    # asv starts virtualenv and pip by name.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    command = [sys.executable, "-m", "asv", *arguments]
    return run(command, cwd=FOLDER, env={**os.environ, "PATH": path}, stdin=stdin, keep_open=[lock])


if __name__ == "__main__":
    sys.exit(main())
