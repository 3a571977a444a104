"""Environments of several GB beside the project's own: the peers' and the engine's are made of these steps."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet")


class EnvironmentMissing(RuntimeError):
    """There is no such environment; the message says why."""


def make_folder(folder: Path, room: int, who: str) -> None:
    """Make ``folder``; EnvironmentMissing if that cannot be, or has not as many bytes free as ``who`` takes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentMissing(f"{error.filename} cannot be made: {error.strerror}") from error
    free = shutil.disk_usage(folder).free
    if free < room:
        raise EnvironmentMissing(f"{folder} has {free / 1e9:.1f} GB free, and {who} about {room / 1e9:.0f}")


def make_environment(folder: Path, *options: str) -> str:
    """Make a Python environment in ``folder`` by this Python; returns its Python."""
    do("a Python environment cannot be made", [sys.executable, "-m", "venv", *options, str(folder)])
    return str(folder.absolute() / "bin/python")


def do(failure: str, command: list[str]) -> None:
    """Run a command; EnvironmentMissing with ``failure``, and the reason that the command gave, if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).strip().splitlines() if line.strip()]
        reason = next(
            (line for line in reversed(said) if line.startswith("ERROR")), said[-1] if said else "no reason given"
        )
        raise EnvironmentMissing(f"{failure}: {reason.removeprefix('ERROR: ')}")
