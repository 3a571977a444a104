"""What the tests of commands ask about processes."""

from __future__ import annotations

import time
from pathlib import Path


def ended(pid: int) -> None:
    """Waits until it is gone, or is nobody's concern but init's."""
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.01)
