"""README: its example runs as printed on each implementation, and what it names exists."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from implementations import Implementation

import triradix

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ABLATIONS = (ROOT / "docs" / "ABLATIONS.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def failures(text: str, name: str) -> list[str]:
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert test.examples, "nothing to run"
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    return said


def test_the_example_runs_as_printed(implementation: Implementation) -> None:
    if ":" in implementation.name:
        pytest.skip("the example makes its cache by name")
    (example,) = re.findall(r"```pycon\n(.*?)```", README, re.DOTALL)
    assert example.count('create("rust"') == 1
    assert failures(example.replace('"rust"', f'"{implementation}"'), "README.md") == []


def test_the_example_of_the_package_runs_as_printed() -> None:
    assert failures(triradix.__doc__ or "", "triradix") == []


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_every_target_that_is_named_exists(text: str) -> None:
    named = {
        target for command in re.findall(r"(?:^|`)make ([a-z -]+)", text, re.MULTILINE) for target in command.split()
    }
    defined = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    assert named
    assert named <= defined


def test_a_command_takes_as_long_everywhere() -> None:
    """What `make help` and the two READMEs say of the same command."""
    benchmarks = (ROOT / "asv_benchmarks" / "README.md").read_text(encoding="utf-8")
    readme = re.search(r"^\|.*`make bench`.*\| (.*?) a commit \|", README, re.MULTILINE)
    table = dict(
        re.findall(r"^\| `make (bench(?:-full)?)` \| .*? \| (5 minutes|half an hour)", benchmarks, re.MULTILINE)
    )
    help_says = dict(re.findall(r"^(bench(?:-full)?):.*\((.*?)\)", MAKEFILE, re.MULTILINE))
    assert readme
    assert table == help_says == {"bench": readme[1], "bench-full": "half an hour"}
    ablations = [
        re.search(pattern, text, re.MULTILINE)
        for pattern, text in (
            (r"^ablations:.* \((\d+) minutes", MAKEFILE),
            (r"^\|.*`make ablations` \| (\d+) minutes", README),
            (r"^`make ablations` .*\(in about (\d+) minutes\)", ABLATIONS),
        )
    ]
    assert len({found and found[1] for found in ablations}) == 1, ablations


def test_every_file_that_is_linked_exists() -> None:
    linked = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert linked
    assert [link for link in linked if not (ROOT / link).exists()] == []
