"""Does the suite find faults? Plants them one at a time in a copy of the reference, and runs the fast tests against it.

``python tests/mutants.py`` runs all of them, ``NAME …`` some, ``--list`` lists them. Every fault (``mutants.json``) is
an exact piece of source that must stand in its file exactly once: one that does not apply any more is an error, not a
pass. Ends with 1 if a fault survives.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
REFERENCE = TESTS.parent / "reference"
QUICK = ["test_cases.py", "test_random_walk.py", "test_nodes.py", "test_results.py", "test_keys.py", "test_create.py"]
OPTIONS = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(TESTS.parent)]
OPTIONS += ["--implementation", "mutant:RadixCache", "--walks", "150", "--no-shrink"]
ELSEWHERE = str(TESTS / "test_create.py::test_nothing_stands_in_for_what_is_missing")  # of no use here
HANGS = 120  # seconds of CPU time, of about 10 that all tests take: a fault that makes a call go on for ever is caught


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str


MUTANTS = [Mutant(**mutant) for mutant in json.loads((TESTS / "mutants.json").read_text("utf-8"))]


class Stale(Exception):
    """A fault that does not apply to the source as it is."""


def plant(mutant: Mutant | None, folder: Path) -> None:
    """A copy of the reference under the name ``mutant``, with the fault in it."""
    package = folder / "mutant"
    shutil.copytree(REFERENCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in package.glob("*.py"):
        source = path.read_text("utf-8")
        if mutant is not None and path.stem == mutant.file:
            source = planted(mutant, source)
        path.write_text(source.replace("triradix.reference", "mutant"), "utf-8")


def planted(mutant: Mutant, source: str) -> str:
    if source.count(mutant.old) != 1:
        raise Stale(f"{mutant.name}: stands {source.count(mutant.old)} times in {mutant.file}.py: {mutant.old!r}")
    return source.replace(mutant.old, mutant.new)


def limit_cpu() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (HANGS, HANGS + 10))


def first_failure(mutant: Mutant | None) -> str | None:
    """The test that catches the fault; None if all pass."""
    with tempfile.TemporaryDirectory() as name:
        plant(mutant, Path(name))
        files = [str(TESTS / file) for file in QUICK]
        command = [sys.executable, "-m", "pytest", *files, *OPTIONS, "--deselect", ELSEWHERE]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([name, os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=name, preexec_fn=limit_cpu)
    if done.returncode == -signal.SIGXCPU:
        return f"a call that goes on after {HANGS} s"
    if done.returncode == 0:
        return None
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode != 1 or not told:
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return told[0].partition("::")[2][:90]


def run(mutants: Iterable[Mutant], jobs: int) -> list[Mutant]:
    """Those that survive."""
    survivors = []
    mutants = list(mutants)
    with ThreadPoolExecutor(jobs) as pool:
        for mutant, caught in zip(mutants, pool.map(first_failure, mutants), strict=True):
            print(f"{'caught  ' if caught else 'SURVIVED'}  {mutant.name:36} {caught or ''}", flush=True)
            if not caught:
                survivors.append(mutant)
    return survivors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--list", action="store_true", help="name them and do nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not options.names or mutant.name in options.names]
    if options.list:
        print(*(mutant.name for mutant in chosen), sep="\n")
        return 0
    for mutant in chosen:
        planted(mutant, (REFERENCE / f"{mutant.file}.py").read_text("utf-8"))
    sound = first_failure(None)
    if sound is not None:
        print(f"the reference without any fault fails {sound}")
        return 1
    survivors = run(chosen, options.jobs)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} faults caught")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
