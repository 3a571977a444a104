"""The tutorial: its engine says the same with and without a cache, and what the page quotes stands in the engine."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from implementations import Implementation
from rich.progress import Progress

DOCS = Path(__file__).parent.parent / "docs"
TUTORIAL = (DOCS / "TUTORIAL.md").read_text(encoding="utf-8")
ENGINE = (DOCS / "tiny_engine.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def engine() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tiny_engine", DOCS / "tiny_engine.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tiny_engine"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("page_size", "pages"), [(1, 400), (4, 80), (4, 1000), (16, 24)])
def test_the_same_tokens_with_and_without_a_cache(
    implementation: Implementation, engine: ModuleType, page_size: int, pages: int
) -> None:
    """Also where the pool is so small that the cache has to let go, and leaves no slot behind."""
    model, texts = engine.Model(), engine.prompts(24)
    said = {}
    for cache in (None, implementation.cls(page_size=page_size)):
        made = engine.Engine(model, cache, pages, page_size)
        said[cache] = engine.generate(made, texts, 8, Progress(disable=True), "")
        free = len(made.pool.free_pages) * page_size
        if cache is None:
            assert free == pages * page_size
            total = made.computed
        else:
            assert made.cached > 500
            assert made.computed + made.cached == total
            assert cache.protected_size() == 0
            assert free + cache.evictable_size() == pages * page_size
            cache.check()
    assert said[None] == said[cache]
    assert len({tuple(answer) for answer in said[None]}) > 12, "the answers depend on the prompts"


def test_wrong_slots_change_the_tokens(implementation: Implementation, engine: ModuleType) -> None:
    """What the test above is worth: a cache that hands out others' slots is noticed."""
    model, texts = engine.Model(), engine.prompts(24)
    cache = implementation.cls(page_size=4)
    plain, mixed = engine.Engine(model, None), engine.Engine(model, cache)
    start = mixed.start

    def mix_up(request: object) -> bool:
        started: bool = start(request)
        if started and request.computed >= 16:  # type: ignore[attr-defined]
            request.slots[:8] = request.slots[8:16]  # type: ignore[attr-defined]
        return started

    mixed.start = mix_up
    answers = [engine.generate(made, texts, 8, Progress(disable=True), "") for made in (plain, mixed)]
    assert sum(right != wrong for right, wrong in zip(*answers, strict=True)) > 12


def test_what_is_quoted_is_the_engine() -> None:
    quoted = re.findall(r"```python\n(.*?)```", TUTORIAL, re.DOTALL)
    assert len(quoted) > 4
    lines = [line.strip() for line in ENGINE.splitlines()]
    for block in quoted:
        wanted = [line.strip() for line in block.strip().splitlines()]
        assert any(lines[i : i + len(wanted)] == wanted for i in range(len(lines))), block


def test_the_figures_of_the_page(implementation: Implementation, engine: ModuleType) -> None:
    made = engine.Engine(engine.Model(), implementation.cls(page_size=4))
    engine.generate(made, engine.prompts(60), 16, Progress(disable=True), "")
    assert f"| {made.computed:,} | {made.cached:,} | yes |" in TUTORIAL


def test_the_engine_is_small(engine: ModuleType) -> None:
    assert len(ENGINE.splitlines()) <= 220
    assert engine.__doc__ and "TUTORIAL.md" in engine.__doc__
