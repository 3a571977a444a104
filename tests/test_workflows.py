"""The workflows name make targets that exist, and the Dockerfile and the release do as they say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_step_is_a_target_that_any_machine_can_run(path: Path) -> None:
    commands = re.findall(r"\brun: (.+)", path.read_text(encoding="utf-8"))
    named = [re.search(r"\bmake (?:--\S+ )?([a-z-]+)", command) for command in commands]
    for command, found in zip(commands, named, strict=True):
        if found:
            assert found[1] in TARGETS, command
        else:
            # Or what the machine is to have, and a value for a later step.
            assert command == ".ci/run" or command.startswith(("sudo apt-get ", "rustup ", 'echo "commit=')), command


def test_every_target_is_declared() -> None:
    """A file of the name of a target would keep it from being made."""
    phony = set(" ".join(re.findall(r"^\.PHONY:((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)).replace("\\\n", " ").split())
    assert TARGETS <= phony


def test_cibuildwheel_makes_both_distributions_for_the_same_pythons() -> None:
    """In rust_impl it would find no table of its own, and build for every Python that it knows."""
    told = subprocess.run(["make", "-n", "cibuildwheel"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    calls = [line.split() for line in told.splitlines() if " -m cibuildwheel " in line]
    assert [call[-1] for call in calls] == [".", "rust_impl"]
    assert all("--config-file pyproject.toml" in " ".join(call) for call in calls)


def test_the_documentation_is_built_so_that_a_broken_link_fails() -> None:
    """With --quiet mkdocs counts no warnings, and --strict lets everything pass."""
    (command,) = re.findall(r"mkdocs build .*", MAKEFILE)
    assert "--strict" in command and "--quiet" not in command
