"""Lines are counted as a reader would, and the tables find their places."""

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from asv_benchmarks import sizes


@pytest.mark.parametrize(
    ("language", "text", "lines"),
    [
        ("python", '"""A docstring\nof two lines."""\n\n# A comment.\nx = 1  # one\n\n\ndef f():\n    return x\n', 3),
        ("rust", "//! Docs.\n\n/// More.\nfn f() -> u32 {\n    /* long\n    comment */\n    1 // one\n}\n", 3),
        ("cython", "# A comment.\ncdef int f(int x) noexcept:\n    return x\n", 2),
        ("python", "", 0),
    ],
)
def test_lines_of_code(language: str, text: str, lines: int) -> None:
    assert sizes.code_lines(language, text) == lines


def test_each_part_has_its_sources() -> None:
    found = {name: [path.name for _, path in sizes.sources(part)] for name, part in sizes.PARTS.items()}
    assert "walk.py" in found["reference"] and "cache.pyi" not in found["cython"]
    assert {"walk.pyx", "walk.pxd"} <= set(found["cython"])
    assert {"walk.rs", "cache.rs", "lib.rs"} <= set(found["rust"]) and "lockstep.rs" not in found["rust"]


def test_a_wheel_is_weighed_by_its_part(tmp_path: Path) -> None:
    def make(copy: Path, into: Path) -> None:
        into.mkdir()
        with zipfile.ZipFile(into / "one.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr("triradix/reference/cache.py", "x = 1\n" * 1000)
            wheel.writestr("triradix/other.py", "y = 2\n" * 5000)

    built = sizes.build(sizes.PARTS["reference"], tmp_path, make, tmp_path / "wheels")
    assert built.installed == 6000 and 0 < built.packed < 1000


def _report() -> dict[str, Any]:
    """A whole comparison."""
    values = (("reference", 5.0), ("cython", 0.1), ("rust", 0.2), ("sglang-py", None))
    cells = {name: {"median": value} for name, value in values}
    rows = [{"name": name, "title": f"row {name}", "unit": "µs", "cells": cells} for name in sizes.FIGURES]
    rows[0] = {**rows[0], "cells": {**cells, "sglang-py": {"median": 7.0}}}
    facts = {"cpu": "A processor", "cores": 2, "system": "Linux", "python": "CPython"}
    made = {"made": "2026-01-02T00:00", "commit": "abc", "command": "triradix compare", "quick": False}
    return {"rows": rows, "machine": facts, **made}


PAGE = "Before.\n<!-- table: figures -->\nold\n<!-- end of table -->\nAfter.\n"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


@pytest.fixture
def comparison(tmp_path: Path) -> Path:
    path = tmp_path / "compare.json"
    path.write_text(json.dumps(_report()))
    return path


def only_figures(comparison: Path, *more: str) -> int:
    return sizes.main(["--only-figures", "--compare", str(comparison), *more])


def test_figures_stand_in_the_page(page: Path, comparison: Path) -> None:
    assert only_figures(comparison, "--page", str(page)) == 0
    text = page.read_text()
    assert "| row hot-1k | 5 µs | 0.1 µs | 0.2 µs | 0.50 | – |" in text and "old" not in text
    assert text.startswith("Before.\n") and text.endswith("After.\n")


def without(system: str) -> list[dict[str, Any]]:
    return [{**row, "cells": {**row["cells"], system: {"median": None}}} for row in _report()["rows"]]


@pytest.mark.parametrize(
    ("change", "lack"),
    [
        ({"quick": True}, "it is of a quick run"),
        ({"rows": _report()["rows"][2:]}, "it lacks the rows short-match, short-insert"),
        ({"rows": without("rust")}, "it has no figure of rust"),
        ({"rows": without("sglang-py")}, "it has no figure of sglang-py"),
    ],
)
def test_a_page_loses_nothing_to_a_part_of_a_comparison(
    page: Path, comparison: Path, change: dict[str, Any], lack: str, capsys: pytest.CaptureFixture[str]
) -> None:
    comparison.write_text(json.dumps(_report() | change))
    assert only_figures(comparison, "--page", str(page)) == 1
    assert capsys.readouterr().err == (
        f"sizes: {comparison} is not for a page, {lack}: `make compare` makes a whole one\n"
    )
    assert page.read_text() == PAGE
    assert only_figures(comparison) == 0
    assert "| row hot-1k |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b"null", b"7", b'{"rows": 1}', b'{"rows": [1]}', b"{", b"\xff", b"[" * 99999]
)
def test_what_is_no_comparison_is_said(comparison: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    comparison.write_bytes(content)
    assert only_figures(comparison) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"sizes: {comparison} is no ") and said.count("\n") == 1


@pytest.mark.parametrize("lacks", ["rows", "machine", "made", "commit", "command"])
def test_what_a_comparison_lacks_is_named(comparison: Path, lacks: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = _report()
    del report[lacks]
    comparison.write_text(json.dumps(report))
    assert only_figures(comparison) == 1
    assert capsys.readouterr().err == (
        f"sizes: {comparison} is no comparison (it lacks '{lacks}'): `make compare` makes one\n"
    )


def test_what_cannot_be_used_is_said(
    tmp_path: Path, page: Path, comparison: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page.write_text("No place.\n")
    assert only_figures(comparison, "--page", str(page)) == 1
    assert "no place for figures" in capsys.readouterr().err
    for name, reason in (("none.md", "No such file"), (".", "Is a directory")):
        assert only_figures(comparison, "--page", str(tmp_path / name)) == 1
        assert reason in capsys.readouterr().err
    assert only_figures(tmp_path / "none.json") == 1
    assert "none.json cannot be read: No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        sizes.main(["--only-figures"])
    assert "--only-figures wants --compare" in capsys.readouterr().err


def test_a_page_is_looked_at_before_anything_is_built(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sizes, "size_table", lambda: pytest.fail("built"))
    assert sizes.main(["--page", str(page)]) == 1
    assert capsys.readouterr().err == f"sizes: {page}: the page has no place for sizes\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (subprocess.CalledProcessError(1, ["maturin", "build"]), "a build failed: `maturin build`"),
        (FileNotFoundError(2, "No such file or directory", "git"), "nothing can be built: [Errno 2] No such file"),
    ],
)
def test_a_build_that_fails_leaves_the_page(
    page: Path,
    comparison: Path,
    error: Exception,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> str:
        raise error

    page.write_text(both := PAGE + PAGE.replace("figures", "sizes"))
    monkeypatch.setattr(sizes, "size_table", fail)
    assert sizes.main(["--compare", str(comparison), "--page", str(page)]) == 1
    assert capsys.readouterr().err.startswith(f"sizes: {said}")
    assert page.read_text() == both
