"""docs/THREADS.md: its programs give what the page says, whichever way they are raced, and nothing else."""

from __future__ import annotations

import re
import sys
import threading
from ast import literal_eval
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from implementations import Implementation

import triradix

PAGE = (Path(__file__).parent.parent / "docs/THREADS.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def promised(function: str) -> list[Any]:
    """The first column of the table of what that function may return."""
    table = PAGE.split(f"| `{function}()` returns", 1)[1].split("\n\n", 1)[0]
    return [literal_eval(value) for value in re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)]


@pytest.fixture
def program(implementation: Implementation) -> Callable[[], dict[str, Any]]:
    """Makes the cache and the functions of the page anew."""
    source = "\n".join(BLOCKS[:2])
    assert source.count('triradix.create("rust")') == 1
    code = compile(source.replace('triradix.create("rust")', "create()"), "docs/THREADS.md", "exec")

    def make() -> dict[str, Any]:
        names: dict[str, Any] = {"triradix": triradix, "create": implementation.create}
        exec(code, names)
        return names

    return make


@pytest.mark.parametrize("function", ["reader", "careful_reader"])
def test_a_race_gives_nothing_else(program: Callable[[], dict[str, Any]], function: str) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            names = program()
            found: list[Any] = []
            threads = [
                threading.Thread(target=lambda names=names, found=found: found.append(names[function]())),
                threading.Thread(target=names["writer"]),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert found[0] in promised(function)
            names["cache"].check()
    finally:
        sys.setswitchinterval(before)


def test_each_order_gives_its_line(program: Callable[[], dict[str, Any]]) -> None:
    late, between, early = program(), program(), program()
    found = [late["reader"]()]
    late["writer"]()
    hit = between["cache"].match_prefix([1, 2, 3])
    between["writer"]()
    with pytest.raises(triradix.StaleNodeError):
        hit.indices  # noqa: B018
    early["writer"]()
    found += ["stale", early["reader"]()]
    assert found == promised("reader")
    assert [names["careful_reader"]() for names in (program(), early)] == promised("careful_reader")
