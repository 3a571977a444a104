"""Where a figure comes from: the machine it was measured on, and the sources that were measured."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import triradix


def machine() -> dict[str, Any]:
    """Facts of this machine, JSON-able: memory in bytes, ``clock_ns`` what one timed call costs by itself."""
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "clock_ns": _clock_cost(),
        "versions": {name: found for name in ("triradix-rust",) if (found := _version(name))},
    }


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def commit() -> str | None:
    """The commit of the sources that were measured, marked if they were edited since; None outside a checkout."""
    where = Path(triradix.__file__).resolve().parent
    # A git that Ctrl-C ends in the middle would leave its lock on the index.
    git = ["git", "--no-optional-locks", "-C", str(where)]
    try:
        done = subprocess.run(
            [*git, "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _clock_cost() -> float:
    """What one timed call costs by itself: it is part of every figure."""
    readings = np.array([-time.perf_counter_ns() + time.perf_counter_ns() for _ in range(10_000)])
    return float(np.median(readings))


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
