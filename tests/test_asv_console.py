"""How the commands of asv_benchmarks end when their output cannot be written, or when they are ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SAYS = """
import sys
from asv_benchmarks.console import ending, open_missing_streams

def run():
    print("ü" * 100_000 if sys.argv[1] == "much" else "ü")
    if sys.argv[1] == "interrupted":
        raise KeyboardInterrupt
    return 3

open_missing_streams()
sys.exit(ending("name", run))
"""


def run(how: str, shell: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        ["sh", "-c", f'"$@" {shell}', "sh", sys.executable, "-c", SAYS, how],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


def test_what_is_printed_is_printed() -> None:
    assert run("little", "", PYTHONIOENCODING="utf-8") == (3, "ü\n", "")
    assert run("little", "", PYTHONIOENCODING="ascii") == (3, "\\xfc\n", "")
    assert run("little", ">&-") == (3, "", "")
    assert run("interrupted", "", PYTHONIOENCODING="ascii") == (130, "\\xfc\n", "name: stopped\n")


@pytest.mark.parametrize("how", ["little", "much", "interrupted"])
def test_a_full_disk_is_a_sentence(how: str) -> None:
    code, _, said = run(how, ">/dev/full")
    assert code == 1
    assert said == "name: what is printed cannot be written: No space left on device\n"


@pytest.mark.parametrize("how", ["little", "much"])
def test_a_reader_that_has_gone_ends_it_in_silence(how: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        command = [sys.executable, "-c", SAYS, how]
        done = subprocess.run(command, cwd=ROOT, stdout=gone, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")
