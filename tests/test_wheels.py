"""What `make test-wheels` leaves out is one list, with reasons, of tests that exist; the rest needs no checkout."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent
NOT_RUN: dict[str, str] = runpy.run_path(str(ROOT / ".ci" / "test-wheels"))["NOT_RUN"]


def test_what_is_left_out_exists_and_has_a_reason() -> None:
    for test, reason in NOT_RUN.items():
        path, _, function = test.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not function or re.search(rf"^def {function}\(", text, re.MULTILINE), test
        assert len(reason) > 20, test


def test_nothing_of_a_listed_package_runs() -> None:
    """And the other way round: what imports only what wheels have, and reads only what is copied, is not left out."""
    needs = re.compile(
        r"^(?:from|import) (?:asv_benchmarks|profiles|mutants|test_version)\b|ROOT / \"(?:\.ci|\.github|rust_impl)[\"/]"
        r"|\"\.ci\"|\"cython_impl\"|\.ci/chromium",
        re.MULTILINE,
    )
    files = {f"tests/{path.name}": path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("test_*.py")}
    needing = {name for name, text in files.items() if needs.search(text)}
    assert needing == {name for name in NOT_RUN if "::" not in name}
