"""MemoryError, and nothing else, where memory runs out."""

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

ISOLATED = Path(__file__).parent / "isolated"


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
def test_out_of_memory_changes_nothing(isolated: Any) -> None:
    print(isolated("out_of_memory.py"))


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An allocator that can be told to refuse."""
    made = tmp_path_factory.mktemp("shim") / "refuse.so"
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, ISOLATED / "refuse.c"], check=True)
    return made


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what is behind malloc has its names from glibc")
def test_each_single_allocation_refused(own_implementation: str, shim: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", ISOLATED / "refused.py", own_implementation],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ISOLATED.parent), "PYTHONMALLOC": "malloc", "LD_PRELOAD": str(shim)},
    )
    assert done.returncode == 0, f"ended with {done.returncode}:\n{done.stderr[-3000:]}"
    print(done.stdout)
