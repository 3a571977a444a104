"""Reading traces, and making workloads: what is accepted, and the one sentence that says what is wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from triradix.replay.requests import VOCABULARY, Segments, expand, text_length, text_tokens
from triradix.replay.traces import TraceError, read_trace
from triradix.replay.workloads import WORKLOADS, make_workload

BLOCKS = {"timestamp": 0, "input_length": 1000, "output_length": 7, "hash_ids": [1, 2]}


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
    return path


def test_blocks_become_tokens(tmp_path: Path) -> None:
    other = {"timestamp": 5.5, "input_length": 1536, "output_length": 0, "hash_ids": [1, 9, 2]}
    trace = read_trace(write(tmp_path / "t.jsonl", BLOCKS, other))
    one, two = (text_tokens(request.prompt) for request in trace.requests)
    assert trace.block_size == 512
    assert (len(one), len(two)) == (1000, 1536)
    assert one.dtype == np.uint32
    assert np.array_equal(one[:512], two[:512])
    assert not np.array_equal(one[512:], two[512:1000])
    assert np.array_equal(one[512:], two[1024 : 1024 + 488]), "an id means the same tokens wherever it stands"
    assert text_length(trace.requests[0].output) == 7


def test_equal_prompts_have_equal_answers_and_others_do_not(tmp_path: Path) -> None:
    longer = BLOCKS | {"input_length": 1001}
    trace = read_trace(write(tmp_path / "t.jsonl", BLOCKS, BLOCKS, longer))
    one, same, other = (text_tokens(request.output).tolist() for request in trace.requests)
    assert one == same != other


def test_token_ids(tmp_path: Path) -> None:
    records = [
        {"token_ids": [5, 2**32 - 1]},
        {"token_ids": [7], "output_length": 3, "timestamp": 1, "extra_key": "lora"},
        {"token_ids": [7], "extra_key": [None, "salt"]},
    ]
    trace = read_trace(write(tmp_path / "t.jsonl", *records))
    assert trace.block_size is None
    assert text_tokens(trace.requests[0].prompt).tolist() == [5, 2**32 - 1]
    assert [text_length(request.output) for request in trace.requests] == [0, 3, 0]
    assert [request.extra_key for request in trace.requests] == [(None, None), ("lora", None), (None, "salt")]


def test_gzip_is_recognised_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "trace-without-suffix"
    path.write_bytes(gzip.compress(json.dumps(BLOCKS).encode()))
    assert len(read_trace(path).requests) == 1


def test_limit_and_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", BLOCKS, "", BLOCKS, "  ", BLOCKS, "not read")
    assert len(read_trace(path, limit=3).requests) == 3


def test_block_size(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", BLOCKS | {"hash_ids": [1, 2, 3, 4]})
    trace = read_trace(path, block_size=256)
    prompt = trace.requests[0].prompt
    assert isinstance(prompt, Segments)
    assert prompt.lengths.tolist() == [256, 256, 256, 232]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "a JSON object is expected on each line, not list"),
        ({"text": "hello"}, "neither hash_ids"),
        (BLOCKS | {"hash_ids": [1]}, "hash_ids has 1 ids, but input_length 1000 makes 2 blocks of 512"),
        (BLOCKS | {"hash_ids": [1, 2, 3]}, "hash_ids has 3 ids"),
        (BLOCKS | {"hash_ids": [1, 2.0]}, "hash_ids[1] must be an integer"),
        (BLOCKS | {"hash_ids": [True, 2]}, "hash_ids[0] must be an integer"),
        (BLOCKS | {"hash_ids": [1, 2**63]}, "hash_ids[1] must be an integer in"),
        (BLOCKS | {"hash_ids": "12"}, "hash_ids must be a list of integers"),
        (BLOCKS | {"input_length": "1000"}, 'input_length must be an integer, not "1000"'),
        (BLOCKS | {"input_length": 0}, "input_length is 0"),
        (BLOCKS | {"input_length": 10**30}, "input_length is 1000"),
        (BLOCKS | {"output_length": -1}, "output_length is -1"),
        (BLOCKS | {"output_length": None}, "output_length must be an integer, not null"),
        ({k: v for k, v in BLOCKS.items() if k != "output_length"}, "output_length is missing"),
        ({k: v for k, v in BLOCKS.items() if k != "timestamp"}, "timestamp is missing"),
        (BLOCKS | {"timestamp": "noon"}, "timestamp must be a finite number"),
        (BLOCKS | {"timestamp": float("nan")}, "timestamp must be a finite number, not NaN"),
        ({"token_ids": []}, "token_ids is empty"),
        ({"token_ids": [1, -1]}, "token_ids[1] must be an integer in 0 … 4294967295, not -1"),
        ({"token_ids": [1, 2**32]}, "token_ids[1]"),
        ({"token_ids": [1, None]}, "token_ids[1]"),
        ({"token_ids": 1}, "token_ids must be a list"),
        ({"token_ids": [1], "extra_key": 3}, "extra_key must be"),
        ({"token_ids": [1], "extra_key": ["a"]}, "extra_key is a tuple of 1"),
        ({"token_ids": [1], "output_length": 2.5}, "output_length must be an integer"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: Any, complaint: str) -> None:
    path = write(tmp_path / "t.jsonl", "", line)
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 2: ")
    assert complaint in message
    assert "\n" not in message


def test_one_format_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", BLOCKS, {"token_ids": [1]})
    with pytest.raises(TraceError, match="line 2: input_length is missing"):
        read_trace(path)


def test_files_that_are_no_trace(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"absent.jsonl cannot be read: No such file"):
        read_trace(tmp_path / "absent.jsonl")
    with pytest.raises(TraceError, match="cannot be read: Is a directory"):
        read_trace(tmp_path)
    for content in (b"", b"\n\n", gzip.compress(b"")):
        (tmp_path / "empty").write_bytes(content)
        with pytest.raises(TraceError, match="empty holds no request"):
            read_trace(tmp_path / "empty")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(TraceError, match="line 1: not JSON"):
        read_trace(tmp_path / "binary")
    whole = gzip.compress(json.dumps(BLOCKS).encode() * 100)
    for damaged in (whole[:-20], whole[:40] + b"????" + whole[44:], whole[:3]):
        (tmp_path / "damaged.gz").write_bytes(damaged)
        with pytest.raises(TraceError, match="damaged"):
            read_trace(tmp_path / "damaged.gz")


def test_different_ids_are_different_tokens() -> None:
    count = 200_000
    firsts = expand(Segments(np.arange(count), np.full(count, 4))).reshape(count, 4)
    assert firsts.max() < VOCABULARY
    assert len(np.unique(firsts, axis=0)) == count
    assert len(np.unique(firsts)) > 0.99 * VOCABULARY


def test_expansion_is_fixed() -> None:
    """Written down, so that a trace means the same tokens in every version."""
    assert expand(Segments(np.array([0, -1, 2**62]), np.array([2, 1, 2]))).tolist() == EXPANDED


EXPANDED = [110504, 14833, 66403, 48944, 68798]


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_follow_from_their_seed(name: str) -> None:
    def tokens(seed: int) -> list[list[int]]:
        return [text_tokens(request.prompt).tolist() for request in make_workload(name, 40, seed).requests]

    assert tokens(3) == tokens(3) != tokens(4)
    assert tokens(3)[:10] == [text_tokens(request.prompt).tolist() for request in make_workload(name, 10, 3).requests]


@pytest.mark.parametrize(
    ("name", "prompt", "output"), [("shared-prompt", 1_835, 43), ("rag", 2_300, 100), ("chat", None, 214.5)]
)
def test_workloads_have_the_published_means(name: str, prompt: float | None, output: float) -> None:
    requests = make_workload(name, 4000, 0).requests
    assert np.mean([text_length(request.output) for request in requests]) == pytest.approx(output, rel=0.06)
    if prompt is not None:
        assert np.mean([text_length(request.prompt) for request in requests]) == pytest.approx(prompt, rel=0.06)
    else:
        new = [request.prompt.lengths[-1] for request in requests if isinstance(request.prompt, Segments)]
        assert np.mean(new) == pytest.approx(69.5, rel=0.06)
        turns = [len(request.prompt.ids) for request in requests if isinstance(request.prompt, Segments)]
        assert len(turns) / turns.count(1) == pytest.approx(2.0, rel=0.1)


def test_the_agents_contexts_grow_as_published() -> None:
    requests = make_workload("agent", 4000, 0).requests
    contexts = [text_length(request.prompt) for request in requests]
    outputs = [text_length(request.output) for request in requests]
    assert sum(contexts) / sum(outputs) == pytest.approx(131, rel=0.3)
    at_step_30 = [
        text_length(request.prompt)
        for request in requests
        if isinstance(request.prompt, Segments) and len(request.prompt.ids) == 2 + 2 * 29
    ]
    assert np.mean(at_step_30) == pytest.approx(80_000, rel=0.1)
