"""Measure commits with asv: what the ``make bench…`` targets run.

    python -m asv_benchmarks.bench short|full|history [COMMIT | RANGE …]     default: HEAD
    python -m asv_benchmarks.bench compare BASE [COMMIT]                     is COMMIT (default: HEAD) slower than BASE?

asv builds each commit in an environment of its own and measures that build: edits that are not committed are not seen.
One run at a time: a second one in the same clone is refused. asv and its workers end with this process.
Exit codes: 0 all was measured, and nothing became slower; 1 something became slower, or asv could not begin;
2 a part did not build or a benchmark failed, or the arguments cannot be used, or another run is under way;
128 + N stopped by signal N (13: the reader of a pipe has gone).
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

from asv_benchmarks import machines
from asv_benchmarks.attached import Stopped, run
from asv_benchmarks.console import ending, open_missing_streams
from asv_benchmarks.selections import PROFILES, regexes

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
MEASURED = ("src", "reference", "cython_impl", "rust_impl", "setup.py", "pyproject.toml")


class Problem(Exception):
    """Nothing can be measured; the message is one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    open_missing_streams()
    return ending("bench", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> int:
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
    name = machine_name(options.machine)
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
        for folder in ("env", "results"):
            make_folder(ROOT / ".asv" / folder)
        if commits(["HEAD"])[0] in chosen and _git("status", "--porcelain", "--", *MEASURED):
            print("bench: there are edits that are not committed; they are not measured", file=sys.stderr)
        command += ["--interleave-rounds", "--show-stderr", f"--machine={name}"]
        describe_machine(name)
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
    make_folder(path.parent)
    try:
        opened = path.open("a+")
    except OSError as error:
        raise Problem(f"{path} cannot be written: {error.strerror}") from None
    with opened as file:
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


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise Problem(f"{error.filename} is no folder: nothing can be measured before it is out of the way") from None
    except OSError as error:
        raise Problem(f"{path} cannot be made: {error.strerror}") from None


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
    # A git that Ctrl-C ends in the middle would leave its lock on the index.
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(ROOT), *arguments], capture_output=True, text=True
        )
    except FileNotFoundError:
        raise Problem("git is not on PATH; install it (Debian, Ubuntu: the package git)") from None
    return done.stdout.strip() if done.returncode == 0 else None


def continuous_factor() -> float:
    """How much slower is slower, from asv.conf.json: asv itself takes it on the command line only."""
    return float(json.loads((FOLDER / "asv.conf.json").read_text())["continuous_factor"])


def machine_name(given: str | None) -> str:
    """Under which the results are filed: what was given, or the host name."""
    from asv.machine import Machine  # type: ignore[import-untyped]

    try:
        return machines.plain(Machine.get_unique_machine_name() if given is None else given)
    except ValueError as error:
        raise Problem(f"{error}; name it with --machine" if given is None else f"--machine: {error}") from None


def describe_machine(name: str) -> None:
    """Tell asv what machine this is, so that it need not ask."""
    from asv.machine import Machine, MachineCollection

    facts: dict[str, Any] = Machine.get_defaults()
    facts["machine"] = name
    facts["os"] = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    content = {name: facts, "version": MachineCollection.api_version}
    try:
        # Anew: what it held of this machine or another is of no use to this run.
        machines.FILE.write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8")
    except OSError as error:
        raise Problem(f"{machines.FILE} cannot be written: {error.strerror}") from None


_ASV = """
import sys
sys.excepthook = lambda kind, *error: issubclass(kind, KeyboardInterrupt) or sys.__excepthook__(kind, *error)
from asv.main import main
main()
"""
"""asv, whose end by Ctrl-C is no traceback: this process says it."""


def asv(arguments: Sequence[str], stdin: str, lock: int) -> int:
    """Run asv where its configuration is; its exit code. The lock is held until all that asv has started is gone."""
    # asv starts virtualenv and pip by name.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    command = [sys.executable, "-c", _ASV, *arguments]
    return run(command, cwd=FOLDER, env={**os.environ, "PATH": path}, stdin=stdin, keep_open=[lock])


if __name__ == "__main__":
    sys.exit(main())
