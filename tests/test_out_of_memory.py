"""MemoryError, and nothing else, where memory runs out."""

import sys
from typing import Any

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
def test_out_of_memory_changes_nothing(isolated: Any) -> None:
    print(isolated("out_of_memory.py"))
