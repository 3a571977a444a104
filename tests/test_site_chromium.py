"""`.ci/chromium` prints the path of a Chromium, or says in one sentence how to get one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "chromium"


class Machine:
    """A PATH of its own with stand-ins; nobody's but a plain user's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.has("id", "echo 1000")

    def has(self, tool: str, script: str = "exit 0") -> str:
        (self.folder / tool).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / tool).chmod(0o755)
        return str(self.folder / tool)

    def asked(self, **settings: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.folder), **settings}
        return subprocess.run(["/bin/sh", SCRIPT], capture_output=True, text=True, env=environment)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_one_that_is_named_is_taken(machine: Machine) -> None:
    machine.has("chromium")
    named = machine.has("my-browser")
    assert machine.asked(CHROMIUM=named).stdout == f"{named}\n"
    assert machine.asked(CHROMIUM="my-browser").stdout == f"{named}\n"


def test_one_that_is_named_and_does_not_run_is_refused(machine: Machine) -> None:
    machine.has("chromium")
    done = machine.asked(CHROMIUM="/nowhere")
    assert done.returncode == 1
    assert done.stderr == "triradix: CHROMIUM=/nowhere is not a Chromium that runs; name another one.\n"


def test_the_first_of_the_usual_names_that_runs_is_taken(machine: Machine) -> None:
    machine.has("chromium", "exit 1")
    found = machine.has("google-chrome")
    assert machine.asked().stdout == f"{found}\n"


def test_without_one_it_is_said_what_to_install(machine: Machine) -> None:
    machine.has("apt-get")
    done = machine.asked()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "(Debian: the package chromium), or give CHROMIUM=/path/to/one." in done.stderr


def test_root_on_debian_installs_it(machine: Machine) -> None:
    machine.has("id", "echo 0")
    chmod = shutil.which("chmod")
    browser = machine.folder / "chromium"
    machine.has("apt-get", f'case "$*" in *install*) echo "#!/bin/sh" >{browser}; {chmod} +x {browser} ;; esac')
    done = machine.asked()
    assert (done.returncode, done.stdout) == (0, f"{browser}\n")
    assert done.stderr == "Installing Debian's chromium\n"


def test_an_install_that_fails_is_said(machine: Machine) -> None:
    machine.has("id", "echo 0")
    machine.has("apt-get", "exit 100")
    done = machine.asked()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[1].startswith("triradix: apt-get cannot install the package chromium; ")
