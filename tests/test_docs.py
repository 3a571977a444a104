"""The pages of docs/: their examples run as printed; what they link to exists, and every target that they name."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import triradix.metrics
from triradix.metrics import prometheus_text, timed
from triradix.metrics.latencies import OPERATIONS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
RUN = [page for page in PAGES if "```pycon" in page.read_text(encoding="utf-8")]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def failures(text: str, where: str) -> list[str]:
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {}, where, None, 0)
    assert test.examples, "nothing to run"
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    return said


@pytest.mark.parametrize("page", RUN, ids=name)
def test_examples_run_as_printed(page: Path) -> None:
    examples = re.findall(r"```pycon\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert failures("\n".join(examples), name(page)) == []


def test_the_example_of_the_metrics_runs_as_printed() -> None:
    assert failures(triradix.metrics.__doc__ or "", "triradix.metrics") == []


@pytest.mark.parametrize("page", sorted((DOCS / "how-to").glob("*.md")), ids=name)
def test_programs_run_as_they_stand(page: Path) -> None:
    """Each by itself, in a process of its own; but nobody listens at a port."""
    deaf = "import prometheus_client; prometheus_client.start_http_server = print\n"
    for program in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        done = subprocess.run([sys.executable, "-c", deaf + program], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_a_page_links_to_exists(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert "://" in link or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_target_that_is_named_exists(page: Path) -> None:
    named = re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))
    assert set(named) <= TARGETS


def test_every_metric_of_the_dashboard_exists() -> None:
    cache = timed(triradix.create("reference"))
    cache.match_prefix([1])
    names = set(re.findall(r"^(triradix_\w+){", prometheus_text({"x": cache}), re.MULTILINE))
    dashboard = json.loads((DOCS / "how-to" / "grafana.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(asked) >= 8
    for expression in asked:
        wanted = set(re.findall(r"triradix_\w+", expression))
        assert wanted and wanted <= names, expression
    shown = {name for expression in asked for name in re.findall(r"triradix_\w+", expression)}
    assert {name for name in names if not name.startswith("triradix_operation")} <= shown | {"triradix_hit_ratio"}
    assert set(OPERATIONS) >= set(re.findall(r'operation="(\w+)"', " ".join(asked)))
