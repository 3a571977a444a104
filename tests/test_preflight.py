"""What a machine lacks is said in one sentence, before anything is downloaded or made."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PREFLIGHT = Path(__file__).parent.parent / ".ci" / "preflight"


class Machine:
    """A PATH of its own, with stand-ins for the tools."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for tool in ("sh", "sed", "cut", "dirname"):
            found = shutil.which(tool)
            assert found, tool
            (folder / tool).symlink_to(found)
        self.has("cargo", "echo 'cargo 99.0.0 (stand-in)'")
        for compiler in ("cc", "c-compiler"):
            self.has(compiler, "exit 0")
        self.has("python3", f'exec "{sys.executable}" "$@"')
        self.settings = {"CC": "c-compiler -pthread"}

    def has(self, tool: str, script: str) -> None:
        (self._folder / tool).write_text(f"#!/bin/sh\n{script}\n")
        (self._folder / tool).chmod(0o755)

    def lacks(self, tool: str) -> None:
        (self._folder / tool).unlink()

    def python_fails_at(self, what: str) -> None:
        self.has("python3", f'case "$*" in *"{what}"*) exit 1 ;; esac\nexec "{sys.executable}" "$@"')

    def preflight(self) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self._folder), "HOME": "/", **self.settings}
        return subprocess.run(["/bin/sh", PREFLIGHT], capture_output=True, text=True, env=environment)

    def sentence(self) -> str:
        done = self.preflight()
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_complete_machine_gives_its_python(machine: Machine) -> None:
    done = machine.preflight()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{sys.executable}\n"


def test_no_python(machine: Machine) -> None:
    machine.lacks("python3")
    assert "Python 3.10 or newer is needed" in machine.sentence()


def test_an_old_python(machine: Machine) -> None:
    machine.has("python3", "echo False")
    assert "Python 3.10 or newer is needed" in machine.sentence()


def test_a_shim_that_runs_nothing_is_passed_over(machine: Machine) -> None:
    machine.has("python3", "echo 'no such version' >&2; exit 127")
    machine.has("python3.10", f'exec "{sys.executable}" "$@"')
    assert machine.preflight().stdout == f"{sys.executable}\n"


def test_a_python_that_was_asked_for_is_not_replaced_by_another(machine: Machine) -> None:
    machine.settings["PYTHON"] = "/no/such/python"
    assert "PYTHON=/no/such/python" in machine.sentence()


def test_no_venv(machine: Machine) -> None:
    machine.python_fails_at("ensurepip")
    assert "no venv module" in machine.sentence()


def test_no_headers(machine: Machine) -> None:
    machine.python_fails_at("Python.h")
    assert "no C headers" in machine.sentence()


def test_no_c_compiler(machine: Machine) -> None:
    machine.lacks("c-compiler")
    assert "'c-compiler' does not run" in machine.sentence()


def test_no_linker_for_rust(machine: Machine) -> None:
    machine.lacks("cc")
    assert "'cc' does not run" in machine.sentence()


def test_no_cargo(machine: Machine) -> None:
    machine.lacks("cargo")
    assert "cargo is needed" in machine.sentence()


def test_a_cargo_without_a_toolchain(machine: Machine) -> None:
    machine.has("cargo", "echo 'rustup could not choose a version' >&2; exit 1")
    assert "cargo is needed" in machine.sentence()


def test_an_old_cargo(machine: Machine) -> None:
    machine.has("cargo", "echo 'cargo 1.31.0 (stand-in)'")
    assert "cargo 1.31.0 is too old" in machine.sentence()
