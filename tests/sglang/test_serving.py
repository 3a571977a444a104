"""The serving experiment on the real engine: one short run of it, and the attention that it puts in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from triradix.serving.attention import _extend
from triradix.serving.measured import figures
from triradix.serving.model import tiny_model
from triradix.serving.plan import SHARED, TRACE, Run, Settings
from triradix.serving.session import engine


@pytest.mark.engine
def test_a_run_of_each_workload(tmp_path: Path) -> None:
    """What the client counts, and what the probe sees inside the engine, are of the same requests."""
    settings = Settings(requests=16)
    rows = tmp_path / "rows"
    prompts = [{"input_ids": [*range(100, 300), 400 + n], "output_len": 4} for n in range(16)]
    rows.write_text("".join(json.dumps(row) + "\n" for row in prompts))
    with engine(
        Path(sys.executable), tiny_model(Path(sys.executable)), settings, "triradix-rust", tmp_path / "engine"
    ) as running:
        for workload, tokens, hits in ((TRACE, 16 * 201, 15 * 200), (SHARED, 16 * 1088, 14 * 1024)):
            bench, steps = running.run(settings, Run(0, "triradix-rust", workload, 1), str(rows))
            assert bench["completed"] == 16 and bench["median_ttft_ms"] > 0
            assert bench["cache_report"]["total_prompt_tokens"] == tokens
            # One at a time: every request hits what the one before left.
            assert bench["cache_report"]["total_cached_tokens"] == hits
            assert sum(step["extend"][1] for step in steps if "extend" in step) == tokens - hits
            found = figures(steps, 16)
            assert found["calls"]["match_prefix"]["count"] >= 16 and found["calls"]["checkpoint"]["count"] >= 32
            assert 0 < found["cache s"] < found["busy s"] and 0 < found["model s"] < found["busy s"]


def test_attention_is_that_of_whole_sequences() -> None:
    """Two requests in one batch, one of them with tokens before: as if all had been computed anew."""
    torch.manual_seed(0)
    heads, width, slots = 4, 8, 64
    pools = [torch.randn(slots, 2, width) for _ in range(2)]
    lengths, before = [13, 9], [5, 0]
    table = torch.stack([torch.randperm(slots)[:16], torch.randperm(slots)[:16]])
    queries = [torch.randn(length, heads, width) for length in lengths]
    new = torch.cat([query[start:] for query, start in zip(queries, before, strict=True)])
    output = torch.empty_like(new)
    _extend(
        None,
        new,
        output,
        *pools,
        table,
        torch.tensor([0, 1]),
        torch.tensor(lengths),
        torch.tensor(before),
        torch.tensor([8, 9]),
        scaling=0.3,
        enable_gqa=True,
        causal=True,
    )
    wanted = []
    for row, (query, length, start) in enumerate(zip(queries, lengths, before, strict=True)):
        keys, values = (pool[table[row, :length]].transpose(0, 1)[None] for pool in pools)
        whole = scaled_dot_product_attention(
            query.transpose(0, 1)[None], keys, values, is_causal=True, scale=0.3, enable_gqa=True
        )
        wanted.append(whole[0].transpose(0, 1)[start:])
    torch.testing.assert_close(output, torch.cat(wanted))
    with pytest.raises(NotImplementedError):
        _extend(None, new, output, *pools, table, None, None, None, None, causal=False)
