"""The engine loop over each implementation: the oracle's answers, known hit rates, no slot lost.

The published traces are not part of the repository. With the variable TRIRADIX_TRACES (a folder that holds
``mooncake_conversation_trace.jsonl`` and ``mooncake_synthetic_trace.jsonl``) there is one more test, that replays them
whole; without it that test does not exist, and a small trace with known hit rates stands in.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from implementations import Implementation

from triradix.config import POLICIES
from triradix.replay.engine import Engine
from triradix.replay.pool import SlotPool
from triradix.replay.recorder import Recorder
from triradix.replay.report import block_hit_rate, ideal_hit_rates, token_hit_rate
from triradix.replay.requests import Request, Segments, Trace
from triradix.replay.traces import read_trace
from triradix.replay.workloads import WORKLOADS, make_workload


def drive(tree: Any, requests: list[Request], **settings: Any) -> Recorder:
    """A replay, with all that must hold at its end."""
    settings = {"chunk": 4096, "concurrency": 8, "with_output": True, "capacity": None} | settings
    pool = SlotPool(settings.pop("capacity"), tree.page_size)
    recorder = Recorder(len(requests))
    told: list[int] = []
    Engine(tree, pool, recorder, **settings).run(requests, told.append)
    assert told == list(range(1, len(requests) + 1))
    tree.check()
    assert tree.protected_size() == 0
    assert pool.used == tree.total_size()
    pool.check_only_holder(tree.all_indices())
    return recorder


def small(requests: list[Request], divisor: int = 40) -> list[Request]:
    """The same sharing with shorter texts: the oracle takes its time."""

    def shorter(text: Any) -> Segments:
        return Segments(text.ids, -(-text.lengths // divisor))

    return [Request(shorter(each.prompt), shorter(each.output), each.extra_key) for each in requests]


def texts(*prompts: list[tuple[int, int]], output: int = 0) -> list[Request]:
    """Requests from the (id, length) of their segments, each with an output of its own."""
    return [
        Request(
            Segments(np.array([i for i, _ in parts]), np.array([n for _, n in parts])),
            Segments(np.array([10_000 + number]), np.array([output])),
        )
        for number, parts in enumerate(prompts)
    ]


def run_small(create: Any, workload: str, page_size: int, policy: str, settings: dict[str, Any]) -> Recorder:
    requests = small(make_workload(workload, 50, 1).requests)
    return drive(create(page_size=page_size, eviction_policy=policy), requests, **settings)


@cache
def oracle_answers(workload: str, page_size: int, policy: str, settings: tuple[tuple[str, Any], ...]) -> Recorder:
    """The oracle is slow, and its answers are the same for every implementation."""
    return run_small(oracle.RadixCache, workload, page_size, policy, dict(settings))


def agrees(create: Any, workload: str, page_size: int, policy: str, **settings: Any) -> Recorder:
    mine = run_small(create, workload, page_size, policy, settings)
    theirs = oracle_answers(workload, page_size, policy, tuple(settings.items()))
    assert mine.hit.tolist() == theirs.hit.tolist()
    assert mine.evicted.tolist() == theirs.evicted.tolist()
    assert mine.digest.tolist() == theirs.digest.tolist()
    return mine


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    ("page_size", "settings"),
    [
        (4, {"capacity": 1024, "chunk": 256, "concurrency": 6}),
        (16, {"capacity": 2048, "chunk": 100, "concurrency": 3}),
        (1, {"capacity": 512, "chunk": 512, "concurrency": 4, "with_output": False}),
        (64, {"capacity": None, "chunk": 64, "concurrency": 1}),
    ],
    ids=["pages-of-4", "ragged-chunks", "prompts-only", "one-by-one"],
)
def test_answers_as_the_oracle(
    implementation: Implementation, workload: str, page_size: int, settings: dict[str, Any]
) -> None:
    agrees(implementation.create, workload, page_size, "lru", **settings)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy(implementation: Implementation, policy: str) -> None:
    recorder = agrees(implementation.create, "rag", 4, policy, capacity=640, chunk=64, concurrency=3)
    assert recorder.evicted.sum() > 0


def test_hits_what_was_said_before(implementation: Implementation) -> None:
    requests = texts([(1, 100)], [(1, 100), (2, 50)], [(1, 60)], [(3, 10)], [(1, 100), (2, 50)], output=5)
    recorder = drive(implementation.create(page_size=1), requests)
    assert recorder.hit.tolist() == [0, 100, 60, 0, 150]
    recorder = drive(implementation.create(page_size=16), requests)
    assert recorder.hit.tolist() == [0, 96, 48, 0, 144]


def test_the_next_turn_hits_the_answer(implementation: Implementation) -> None:
    first = Request(Segments(np.array([1]), np.array([40])), Segments(np.array([2]), np.array([20])))
    second = Request(Segments(np.array([1, 2, 3]), np.array([40, 20, 8])), Segments(np.array([4]), np.array([1])))
    for with_output, hit in ((True, 60), (False, 40)):
        recorder = drive(implementation.create(), [first, second], with_output=with_output, concurrency=1)
        assert recorder.hit.tolist() == [0, hit]


def test_what_does_not_fit_is_counted_and_leaves_no_trace(implementation: Implementation) -> None:
    requests = texts([(1, 90)], [(2, 101)], [(3, 97)], [(1, 90)], output=4)
    tree = implementation.create()
    recorder = drive(tree, requests, capacity=100)
    assert recorder.hit.tolist() == [0, -1, -1, 90]
    assert recorder.evicted.tolist() == [0, 0, 0, 0]
    assert tree.stats()["lookups"] == 2


def test_a_request_waits_for_the_locks_of_others(implementation: Implementation) -> None:
    """Three long answers at once do not fit: each is served all the same, and evicts the one before."""
    requests = texts([(1, 30)], [(2, 30)], [(3, 30)], output=640)
    recorder = drive(implementation.create(), requests, capacity=700, concurrency=3)
    assert recorder.hit.tolist() == [0, 0, 0]
    assert recorder.evicted.tolist() == [0, 640, 670]


def test_duplicates_are_freed(implementation: Implementation) -> None:
    """Two equal requests in flight give equal answers: the second one's slots of it are duplicates."""
    answer = Segments(np.array([7]), np.array([200]))
    request = Request(Segments(np.array([1]), np.array([64])), answer)
    tree = implementation.create(page_size=8)
    recorder = drive(tree, [request, request], capacity=1024)
    assert recorder.hit.tolist() == [0, 64]
    assert tree.total_size() == 264
    assert len(recorder.operations["indices"]) == 3, "the second asked for the slots that the first had cached"


def test_chunks_of_one_request_are_no_hits(implementation: Implementation) -> None:
    """Under lfu a long prompt, inserted in many chunks, counts as often as a short one: the older goes first."""
    requests = texts([(1, 64)], [(2, 8)], [(2, 8)], [(3, 60)], [(2, 8)], [(1, 64)])
    tree = implementation.create(eviction_policy="lfu")
    recorder = drive(tree, requests, capacity=100, chunk=8, concurrency=1)
    assert recorder.hit.tolist()[:5] == [0, 0, 8, 0, 8]
    assert recorder.evicted.tolist()[3] == 32


def test_a_small_block_trace_has_its_known_hit_rates(implementation: Implementation, tmp_path: Path) -> None:
    """Eight prompts of 17 blocks and 7,502 tokens; 8 blocks and 4,548 tokens were there before."""
    blocks = [
        ([0, 1, 2], 1400),
        ([0, 1, 2], 1400),  # all three blocks, the partial one too: 1400
        ([0, 1, 3], 1536),  # two: 1024
        ([4], 100),
        ([4], 100),  # 100
        ([5, 1], 1024),  # block 1, but below another: nothing
        ([0], 512),  # 512
        ([0, 4, 7], 1430),  # 512: block 4 is known, but not below block 0
    ]
    path = tmp_path / "small.jsonl"
    path.write_text(
        "\n".join(
            json.dumps({"timestamp": 0, "input_length": length, "output_length": 9, "hash_ids": ids})
            for ids, length in blocks
        )
    )
    trace = read_trace(path)
    known = {"tokens": (1400 + 1024 + 100 + 512 + 512) / 7502, "blocks": (3 + 2 + 1 + 1 + 1) / 17}
    assert ideal_hit_rates(trace) == pytest.approx(known)
    for recorder in both_ways(implementation, trace):
        assert token_hit_rate(recorder.prompt, recorder.hit) == pytest.approx(known["tokens"])
        assert block_hit_rate(recorder.prompt, recorder.hit, 512) == pytest.approx(known["blocks"])


def both_ways(implementation: Implementation, trace: Trace) -> Iterator[Recorder]:
    """Without bound: prompts alone one by one, and as an engine does it. The hit rate is the same."""
    yield drive(implementation.create(), trace.requests, concurrency=1, with_output=False)
    yield drive(implementation.create(), trace.requests)


if "TRIRADIX_TRACES" in os.environ:

    @pytest.mark.parametrize(
        ("name", "blocks", "tokens"), [("conversation", "36.6%", "37.4%"), ("synthetic", "64.0%", "65.1%")]
    )
    def test_the_published_traces_have_their_known_hit_rates(
        implementation: Implementation, name: str, blocks: str, tokens: str
    ) -> None:
        trace = read_trace(Path(os.environ["TRIRADIX_TRACES"], f"mooncake_{name}_trace.jsonl"))
        recorder = drive(implementation.create(), trace.requests, concurrency=1, with_output=False)
        assert f"{token_hit_rate(recorder.prompt, recorder.hit):.1%}" == tokens
        assert f"{block_hit_rate(recorder.prompt, recorder.hit, 512):.1%}" == blocks
