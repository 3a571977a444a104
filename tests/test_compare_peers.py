"""The peers' adapters: `make test-peers`, once `make peers` has installed what they stand before.

TRIRADIX_PEERS names another folder, as ``triradix compare --peers`` takes it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from test_compare import TINY, measure

from triradix.compare.peers import DEFAULT, find
from triradix.compare.systems import SYSTEMS

FOLDER = Path(os.environ.get("TRIRADIX_PEERS", DEFAULT))

pytestmark = pytest.mark.peers


def test_peers_measure_every_row_and_answer_as_ours() -> None:
    peers = find(FOLDER)
    assert peers is not None, f"{FOLDER} holds no peers: `make peers` installs them"
    works, result = measure("*", [SYSTEMS[0], *SYSTEMS[3:]], peers=peers)
    assert result.missing == {}
    assert result.versions["sglang-py"] == "0.5.23"
    cannot = {
        "has no match with a PrefixKey",
        "has no batches",
        "has nothing to compare here",
        "needs two cores",
        "indexes hashed blocks, not tokens: see the rows of larger pages",
    }
    for work in works:
        for row in work.rows:
            measured = result.rows[row.name]
            assert not measured.failed, (row.name, measured.missing)
            assert set(measured.missing.values()) <= cannot
            if row.section in ("Matching", "Inserting, locking, evicting", "Memory and garbage collection"):
                assert {"sglang-py", "sglang-rust", "sglang-rust-raw"} <= set(measured.rounds), row.name
            if row.name.startswith("page") and not row.name.endswith("ratio"):
                assert len(measured.rounds["dynamo"]) == TINY.rounds
