"""Do the models of threads (`make models`) find faults? Plants them one at a time in a copy of the Rust tree.

``python tests/model_mutants.py`` plants all of ``model_mutants.json``, ``NAME …`` some. A fault that does not apply any
more is an error, not a pass. Ends with 1 if a fault survives.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from mutants import Mutant, Stale

TESTS = Path(__file__).parent
CRATE = TESTS.parent / "rust_impl"
TARGET = CRATE / "target" / "models"
COPY = TESTS.parent / "out" / "planted"
COMMAND = ["cargo", "test", "--locked", "--features", "models", "--target-dir", str(TARGET), "--lib", "--"]
HANGS = 1200  # seconds; loom finds deadlocks, so what takes so long is no fault found
MUTANTS = [Mutant(**mutant) for mutant in json.loads((TESTS / "model_mutants.json").read_text("utf-8"))]


def planted(mutant: Mutant) -> str:
    source = (CRATE / "src" / mutant.file).read_text("utf-8")
    if source.count(mutant.old) != 1:
        raise Stale(f"{mutant.name}: stands {source.count(mutant.old)} times in {mutant.file}: {mutant.old!r}")
    return source.replace(mutant.old, mutant.new)


def first_failure(mutant: Mutant) -> str | None:
    """The model that catches the fault; None if all pass."""
    shutil.copytree(CRATE, COPY, ignore=shutil.ignore_patterns("target"), dirs_exist_ok=True)
    (COPY / "src" / mutant.file).write_text(planted(mutant), "utf-8")
    # What one fault left of a build is of no use to the next.
    environment = {**os.environ, "CARGO_INCREMENTAL": "0"}
    command = [*COMMAND, "models::"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=COPY, env=environment, timeout=HANGS)
    if done.returncode == 0:
        return None
    # A panic of loom's while another is on its way ends the process; who was running is named before.
    named = re.search(r"^test (\S+) \.\.\. FAILED", done.stdout, re.MULTILINE) or re.search(
        r"^thread '(\S+models::\S+)' .*panicked", done.stderr, re.MULTILINE
    )
    if "could not compile" in done.stderr or not named:
        raise RuntimeError(f"cargo ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return named[1].rpartition("models::")[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not options.names or mutant.name in options.names]
    for mutant in chosen:
        planted(mutant)
    survivors = 0
    for mutant in chosen:
        caught = first_failure(mutant)
        survivors += caught is None
        print(f"{'caught  ' if caught else 'SURVIVED'}  {mutant.name:42} {caught or ''}", flush=True)
    shutil.rmtree(COPY, ignore_errors=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} faults caught")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
