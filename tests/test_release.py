"""A release is a commit and a tag in which the version and the changelog agree; what is not ready is refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_version import PLACES

ROOT = Path(__file__).parent.parent


def git(where: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    return subprocess.run(
        ["git", *identity, *arguments], cwd=where, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@example.org")
    for name in (".ci/version", ".ci/release", "CHANGELOG.md", *PLACES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    text = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.0.1] - 2020-01-01\n\n- The first.\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "before")
    return tmp_path


def release(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([where / ".ci" / "release", *arguments], capture_output=True, text=True)


def test_a_release(checkout: Path) -> None:
    done = release(checkout, "4.5.6")
    assert done.returncode == 0, done.stderr
    assert git(checkout, "describe", "--tags", "--exact-match") == "v4.5.6"
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "log", "-1", "--format=%s") == "Version 4.5.6"
    changelog = (checkout / "CHANGELOG.md").read_text()
    titles = r"## \[Unreleased\]\n\n## \[4\.5\.6\] - \d{4}-\d\d-\d\d\n\n### Added\n\n- A thing\.\n\n## \[0\.0\.1\]"
    assert re.search(titles, changelog)
    assert subprocess.run([checkout / ".ci/version"], capture_output=True, text=True).stdout == "4.5.6\n"


def test_what_is_not_ready(checkout: Path) -> None:
    assert "is not a version" in release(checkout, "4.5").stderr
    assert "say which version" in release(checkout).stderr
    assert release(checkout, "4.5.6").returncode == 0
    assert "nothing under Unreleased" in release(checkout, "4.5.7").stderr
    assert "there is a v4.5.6 already" in release(checkout, "4.5.6").stderr
    (checkout / "CHANGELOG.md").write_text("edited")
    assert "not committed" in release(checkout, "4.5.7").stderr
    assert git(checkout, "tag", "--list") == "v4.5.6"
