"""A short form of `mutants`: every planted fault still applies, and a few of each kind are caught."""

from __future__ import annotations

import mutants
import pytest

import triradix

FEW = ["match-refreshes-whole-run", "handle-survives-eviction", "lock-not-inherited", "wrong-parent-hash"]


@pytest.fixture(autouse=True)
def reference_is_meant(request: pytest.FixtureRequest) -> None:
    if "reference" not in (request.config.getoption("--implementation") or triradix.IMPLEMENTATIONS):
        pytest.skip("the faults are planted in the reference, which was not asked for")


def test_every_fault_applies() -> None:
    for mutant in mutants.MUTANTS:
        mutants.planted(mutant, (mutants.REFERENCE / f"{mutant.file}.py").read_text("utf-8"))
    names = [mutant.name for mutant in mutants.MUTANTS]
    assert len(set(names)) == len(names) >= 25


@pytest.mark.parametrize("name", FEW)
def test_a_few_are_caught(name: str) -> None:
    (mutant,) = (mutant for mutant in mutants.MUTANTS if mutant.name == name)
    assert mutants.first_failure(mutant)
