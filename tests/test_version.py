"""The version stands in one place, the other places say the same, and one command sets them all."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import triradix

ROOT = Path(__file__).parent.parent
PLACES = (
    "src/triradix/__init__.py",
    "pyproject.toml",
    "rust_impl/pyproject.toml",
    "rust_impl/Cargo.toml",
    "rust_impl/Cargo.lock",
)


def version(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([root / ".ci" / "version", *arguments], capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in (".ci/version", *PLACES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    return tmp_path


def test_all_places_say_the_same() -> None:
    done = version(ROOT)
    assert (done.returncode, done.stdout) == (0, f"{triradix.__version__}\n"), done.stderr


def test_the_distributions_ask_for_each_other_exactly(copy: Path) -> None:
    assert version(copy, "12.3.45").returncode == 0
    assert version(copy).stdout == "12.3.45\n"
    assert 'rust = ["triradix-rust==12.3.45"]' in (copy / "pyproject.toml").read_text()
    assert 'dependencies = ["triradix==12.3.45"]' in (copy / "rust_impl/pyproject.toml").read_text()
    for name in PLACES:
        before, after = (ROOT / name).read_text().splitlines(), (copy / name).read_text().splitlines()
        assert len([1 for old, new in zip(before, after, strict=True) if old != new]) == 1, name


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_says_something_else(copy: Path, place: str) -> None:
    text = (copy / place).read_text()
    assert version(copy, "7.7.7").returncode == 0
    (copy / place).write_text(text)
    done = version(copy)
    assert done.returncode == 1
    assert f"{place} {triradix.__version__}" in done.stderr


@pytest.mark.parametrize("wrong", ["1.2", "v1.2.3", "1.2.3rc1", "01.2.3", "1.2.3 "])
def test_what_is_no_version(copy: Path, wrong: str) -> None:
    done = version(copy, wrong)
    assert done.returncode == 1
    assert "is not a version such as 0.2.0" in done.stderr
    assert version(copy).stdout == f"{triradix.__version__}\n"
