"""Lines are counted as a reader would, and the tables find their places."""

import json
import zipfile
from pathlib import Path

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


def _report() -> dict[str, object]:
    cells = {name: {"median": value} for name, value in (("reference", 5.0), ("cython", 0.1), ("rust", 0.2))}
    row = {"name": "hot-1k", "title": "hot match", "unit": "µs", "cells": cells}
    facts = {"cpu": "A processor", "cores": 2, "system": "Linux", "python": "CPython"}
    return {"rows": [row], "made": "2026-01-02T00:00", "commit": "abc", "command": "triradix compare", "machine": facts}


def test_figures_stand_in_the_page(tmp_path: Path) -> None:
    page, report = tmp_path / "page.md", tmp_path / "compare.json"
    page.write_text("Before.\n<!-- table: figures -->\nold\n<!-- end of table -->\nAfter.\n")
    report.write_text(json.dumps(_report()))
    assert sizes.main(["--only-figures", "--compare", str(report), "--page", str(page)]) == 0
    text = page.read_text()
    assert "| hot match | 5 µs | 0.1 µs | 0.2 µs | 0.50 | – |" in text and "old" not in text
    assert text.startswith("Before.\n") and text.endswith("After.\n")


def test_what_cannot_be_used_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, report = tmp_path / "page.md", tmp_path / "compare.json"
    page.write_text("No place.\n")
    report.write_text(json.dumps(_report()))
    assert sizes.main(["--only-figures", "--compare", str(report), "--page", str(page)]) == 1
    assert "no place for figures" in capsys.readouterr().err
    assert sizes.main(["--only-figures", "--compare", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err
