"""A program to look for candidates in: the built-in workload through one cache, of ours or of a peer.

    python profiles/replayed.py SYSTEM [ROUNDS]

SYSTEM is a name of triradix.compare.systems. The peers need their own Python, ``.peers/venv/bin/python``: `make peers`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Last, so that only what the environment lacks is found there: `triradix` itself, in that of the peers.
sys.path.append(str(ROOT / "src"))

import numpy as np  # noqa: E402

from triradix.compare.systems import SYSTEMS  # noqa: E402
from triradix.replay.requests import text_tokens  # noqa: E402
from triradix.replay.workloads import make_workload  # noqa: E402

CAPACITY = 400_000
"""Tokens; what is above goes after each request. All requests together have several times as many."""
REQUESTS = 1_000


def main(name: str, rounds: int) -> None:
    adapter = next(system for system in SYSTEMS if system.name == name).load()
    adapter.prepare()
    cache = adapter()
    texts = [text_tokens(request.prompt) for request in make_workload("mixed", REQUESTS, seed=0).requests]
    waiting = [(cache.key(text.astype(np.int64)), cache.values(np.arange(len(text), dtype=np.int64))) for text in texts]
    held = 0
    for key, values in waiting * rounds:
        cache.match(key)
        held += len(key) - cache.insert(key, values)
        if held > CAPACITY:
            held -= cache.evict(held - CAPACITY)
            cache.forget_freed()


if __name__ == "__main__":
    os.environ.setdefault("SGLANG_FOLDER", str(ROOT / ".peers" / "sgl"))
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5)
