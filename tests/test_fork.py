"""Fork: parent and child go on, also with a batch running in another thread of the parent."""

from __future__ import annotations

import os
from typing import Any

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork_beside_batches(isolated: Any) -> None:
    isolated("fork.py")
