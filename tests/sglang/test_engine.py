"""SGLang's real engine on each tree: what it says is what it says without a cache, and no slot leaks.

A cache that hands out a wrong slot changes what the model says; one that loses a slot makes the engine stop. Two
planted faults show that both are noticed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import triradix
from triradix.serving.engine import BACKENDS, variables_of
from triradix.serving.environment import variables
from triradix.serving.model import make_model

HERE = Path(__file__).parent
ROOMY = {"pool_tokens": 30_000}
EVICTING = {"pool_tokens": 2_400, "chunked_prefill_size": 128}
TREES = [f"triradix-{implementation}" for implementation in triradix.IMPLEMENTATIONS]
SAYS = ("one by one", "at once", "turns")
CLEAR = 0.01
"""How far, in its logarithm, the best token must be ahead of the second: or else the order of additions decides."""

pytestmark = pytest.mark.engine


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    make_model(folder)
    return folder


def engine(model: Path, name: str, retract: bool = False, **options: Any) -> dict[str, Any]:
    return dict(_engine(model, name, retract, json.dumps(options, sort_keys=True)))


@cache  # what is compared with is run once
def _engine(model: Path, name: str, retract: bool, options: str) -> dict[str, Any]:
    chosen = BACKENDS.get(name, {"radix_cache_backend": name})
    more = {"SGLANG_TEST_RETRACT": "1", "SGLANG_TEST_RETRACT_INTERVAL": "5"} if retract else {}
    ranks = json.loads(options).get("tp_size", 1)
    if ranks > 1:
        # A core for each, and over gloo: where the engine finds NCCL it takes the processor for a GPU.
        more["SGLANG_CPU_OMP_THREADS_BIND"] = "|".join(str(rank % (os.cpu_count() or 1)) for rank in range(ranks))
        more["SGLANG_NCCL_SO_PATH"] = "/none"
    environment = {**variables(), **variables_of(name), **more}
    environment["PYTHONPATH"] += os.pathsep + str(HERE / "planted")
    done = subprocess.run(
        [sys.executable, str(HERE / "engine_run.py"), str(model), json.dumps({**json.loads(options), **chosen})],
        env=environment,
        capture_output=True,
        text=True,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not found:
        raise RuntimeError(f"{name} {options}: the engine died\n{(done.stdout + done.stderr)[-4000:]}")
    result: dict[str, Any] = json.loads(found[0].removeprefix("RESULT "))
    return result


def clear(model: Path, said: dict[str, Any]) -> dict[str, list[str]]:
    """What an engine said, without the answers that rounding may change."""
    gaps = engine(model, "none", **ROOMY)["gaps"]
    turns = next((index for index, gap in enumerate(gaps["turns"]) if gap < CLEAR), len(gaps["turns"]))
    found = {
        way: [answer for answer, gap in zip(said[way], gaps["prompts"], strict=True) if gap >= CLEAR]
        for way in ("one by one", "at once")
    }
    return {**found, "turns": said["turns"][:turns]}


def check(model: Path, name: str, retract: bool = False, **options: Any) -> None:
    plain = clear(model, engine(model, "none", **ROOMY))
    said = engine(model, name, retract, **options)
    assert clear(model, said) == plain
    assert said["after a flush"] == said["namespaces"] == 0
    assert said["namespaces, again"] > 0
    if options["pool_tokens"] == ROOMY["pool_tokens"] and not retract:
        sglang = engine(model, "sglang-rust", **options)
        counts = ("cached", "namespaces, again", "cached in turns")
        assert {count: said[count] for count in counts} == {count: sglang[count] for count in counts}


def test_the_comparison_is_not_of_nothing(model: Path) -> None:
    plain = engine(model, "none", **ROOMY)
    assert plain["cached"] == plain["cached in turns"] == 0
    assert engine(model, "sglang-rust", **ROOMY)["cached"] > 3000
    answers = clear(model, plain)
    assert answers["one by one"] == answers["at once"]
    assert len(set(answers["one by one"])) >= 12
    assert len(answers["turns"]) >= 2


@pytest.mark.parametrize("name", TREES)
def test_each_tree(model: Path, name: str) -> None:
    check(model, name, page_size=1, **ROOMY)


@pytest.mark.parametrize("name", TREES)
def test_each_tree_that_has_to_evict(model: Path, name: str) -> None:
    check(model, name, page_size=16, disable_overlap_schedule=True, **EVICTING)


def test_retraction(model: Path) -> None:
    check(model, "triradix-rust", retract=True, page_size=1, **ROOMY)


@pytest.mark.long
@pytest.mark.parametrize("pool", [ROOMY, EVICTING], ids=["roomy", "evicting"])
@pytest.mark.parametrize("name", TREES)
def test_two_ranks(model: Path, name: str, pool: dict[str, Any]) -> None:
    """Tensor parallelism: each rank has a cache of its own, and they have to decide alike."""
    check(model, name, page_size=1, tp_size=2, **pool)


@pytest.mark.long
def test_sglang_itself(model: Path) -> None:
    """What is compared with: its two trees agree with no cache at all, also where they evict."""
    check(model, "sglang-python", **ROOMY)
    check(model, "sglang-rust", **EVICTING)


def test_wrong_slots_are_noticed(model: Path) -> None:
    plain = clear(model, engine(model, "none", **ROOMY))
    wrong = clear(model, engine(model, "planted-wrong-slots", **ROOMY))
    assert {way for way in SAYS if wrong[way] != plain[way]} == set(SAYS)


def test_a_leak_is_noticed(model: Path) -> None:
    with pytest.raises(RuntimeError, match=r"memory leak detected|Mem Leak Detected"):
        engine(model, "planted-leak", **EVICTING)


@pytest.mark.long
@pytest.mark.parametrize("pool", [ROOMY, EVICTING], ids=["roomy", "evicting"])
@pytest.mark.parametrize("overlap", [True, False], ids=["overlap", "no-overlap"])
@pytest.mark.parametrize("page_size", [1, 16, 64])
@pytest.mark.parametrize("name", TREES)
def test_matrix(model: Path, name: str, page_size: int, overlap: bool, pool: dict[str, Any]) -> None:
    check(model, name, page_size=page_size, disable_overlap_schedule=not overlap, **pool)


@pytest.mark.long
@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("name", TREES)
def test_matrix_with_retraction(model: Path, name: str, page_size: int) -> None:
    check(model, name, retract=True, page_size=page_size, **EVICTING)


@pytest.mark.long
@pytest.mark.parametrize("policy", ["lfu", "fifo", "mru", "filo", "priority", "slru"])
def test_matrix_of_policies(model: Path, policy: str) -> None:
    check(model, "triradix-rust", page_size=1, radix_eviction_policy=policy, **EVICTING)


@pytest.mark.long
@pytest.mark.parametrize("policy", ["lpm", "dfs-weight", "random"])
def test_matrix_of_schedules(model: Path, policy: str) -> None:
    check(model, "triradix-rust", page_size=1, schedule_policy=policy, **EVICTING)
