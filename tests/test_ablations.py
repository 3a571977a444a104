"""The tables of docs/ABLATIONS.md: the script that makes them, on crafted estimates, and the page as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "rust_impl/benches/table.py"
PAGE = ROOT / "docs/ABLATIONS.md"
BLOCK = re.compile(r"<!-- table: ([^\n]*) -->\n(.*?)<!-- end of table -->", re.DOTALL)


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


class Estimates:
    """A folder as criterion leaves it: whatever is added later was measured later."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def add(self, names: tuple[str, str, str], low: float, median: float, high: float, elements: int = 0) -> Path:
        # Folders sort the other way round.
        folder = self.folder / f"{99 - self.count}" / "new"
        folder.mkdir(parents=True)
        interval = {"confidence_level": 0.95, "lower_bound": low, "upper_bound": high}
        estimates = {
            "mean": {"point_estimate": 9e9, "confidence_interval": interval},
            "median": {"point_estimate": median, "confidence_interval": interval},
        }
        path = folder / "estimates.json"
        path.write_text(json.dumps(estimates), encoding="utf-8")
        throughput = {"Elements": elements} if elements else None
        described = dict(zip(("group_id", "function_id", "value_str"), names, strict=True), throughput=throughput)
        (folder / "benchmark.json").write_text(json.dumps(described), encoding="utf-8")
        self.count += 1
        os.utime(path, (1_700_000_000 + self.count, 1_700_000_000 + self.count))
        return path


def crafted(folder: Path) -> Estimates:
    estimates = Estimates(folder)
    estimates.add(("noise", "a load", "first part"), 99, 100, 101)
    estimates.add(("walks", "slab", "hot"), 9.5, 10, 10.25)
    estimates.add(("walks", "slab", "cold"), 1_000, 1_234.5, 2_000)
    estimates.add(("noise", "a load", "second part"), 119, 125, 130)
    estimates.add(("walks", "box", "hot"), 4, 5, 6)
    estimates.add(("keys, a key", "one by one", "all"), 4_000, 5_000, 6_000, elements=1_000)
    estimates.add(("bytes", "slab", ""), 96, 96, 96)
    return estimates


def test_a_group_is_a_table_of_medians_with_their_intervals(tmp_path: Path) -> None:
    crafted(tmp_path)
    printed = run(tmp_path, "--command", "make something")
    assert (printed.returncode, printed.stderr) == (0, "")
    machine, *tables = printed.stdout.rstrip("\n").split("\n\n## ")
    assert tables == [
        "walks (ns of CPU time)\n\n"
        "|  | hot | cold |\n"
        "| --- | ---: | ---: |\n"
        "| slab | 10.0 [9.50, 10.2] | **1,234** [1,000, 2,000] |\n"
        "| box | **5.00** [4.00, 6.00] | – |",
        "keys, a key (ns of CPU time)\n\n|  | all |\n| --- | ---: |\n| one by one | **5.00** [4.00, 6.00] |",
        "bytes\n\n|  |  |\n| --- | ---: |\n| slab | **96.0** |",
    ]
    assert "14 November 2023 with `make something`" in machine
    assert "a load, measured at the beginning of each of 2 parts, took between 100 and 125 ns" in machine
    assert "a factor of 1.25" in machine
    # Of 7.5 %, 81 %, 40 % and 40 %; the probes and what was counted are none of the intervals below.
    assert "Of the 4 intervals of 95 %, half are narrower than 40.0% of their median" in machine


def page(folder: Path, *names: str) -> Path:
    path = folder / "page.md"
    blocks = [f"## {name}\n\n<!-- table: {name} -->\nSTALE\n<!-- end of table -->\n\nA verdict.\n" for name in names]
    path.write_text("# Title\n\n" + "\n".join(blocks), encoding="utf-8")
    return path


def test_the_page_gets_new_tables_and_keeps_its_words(tmp_path: Path) -> None:
    crafted(tmp_path / "measured")
    path = page(tmp_path, "the machine", "bytes", "walks", "keys, a key")
    for _ in range(2):  # what is filled can be filled again
        filled = run(tmp_path / "measured", "--page", path)
        assert (filled.returncode, filled.stdout, filled.stderr) == (0, "", "")
        text = path.read_text(encoding="utf-8")
        assert "STALE" not in text and text.count("A verdict.") == 4 and text.startswith("# Title\n")
        blocks = dict(BLOCK.findall(text))
        assert list(blocks) == ["the machine", "bytes", "walks", "keys, a key"]
        assert "| box | **5.00** [4.00, 6.00] | – |" in blocks["walks"]
        assert "| one by one |" in blocks["keys, a key"]
        assert text.count("| box |") == 1


def test_a_page_whose_markers_do_not_fit_stays_as_it_is(tmp_path: Path) -> None:
    crafted(tmp_path / "measured")
    path = page(tmp_path, "the machine", "bytes", "walks", "runs")
    before = path.read_bytes()
    failed = run(tmp_path / "measured", "--page", path)
    assert failed.returncode == 1
    assert failed.stderr == (
        "The page stays as it is: nothing was measured for 'runs'; the page has no place for 'keys, a key'.\n"
    )
    assert path.read_bytes() == before


def test_the_figures_of_a_verdict_are_computed(tmp_path: Path) -> None:
    estimates = Estimates(tmp_path / "measured")
    for group in ("walks, hot", "walks, cold"):
        for row, times in (("slab", (10, 300)), ("box", (5, 100)), ("box, aligned", (4, 400))):
            for column, time in zip(("1", "64"), times, strict=True):
                estimates.add((group, row, column), time, time if group == "walks, hot" else 10 * time, time)
    words = (
        "A slab takes <!-- times: walks, hot | slab / box -->?<!-- end --> times as long,\n"
        "<!-- percent: walks, hot | slab\n/ box @ 64 -->?<!-- end --> with 64,\n"
        "<!-- times: walks, * | box* / slab -->?<!-- end --> the other way,\n"
        "and from memory <!-- times: walks, cold | slab / walks, hot | slab -->?<!-- end -->.\n"
    )
    path = page(tmp_path, "the machine", "walks, hot", "walks, cold")
    path.write_text(path.read_text(encoding="utf-8") + words, encoding="utf-8")
    for _ in range(2):
        assert run(tmp_path / "measured", "--page", path).stderr == ""
        said = re.sub(r"<!-- (times|percent).*?-->|<!-- end -->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert said.endswith(
            "A slab takes 2 to 3 times as long,\n300 % with 64,\n0.33 to 1.3 the other way,\nand from memory 10.\n"
        )
    path.write_text(
        path.read_text(encoding="utf-8").replace("hot | slab / box", "hot | slab / boxes"), encoding="utf-8"
    )
    before = path.read_bytes()
    assert run(tmp_path / "measured", "--page", path).stderr == (
        "The page stays as it is: it says something of 'walks, hot | slab / boxes', of which nothing was measured.\n"
    )
    assert path.read_bytes() == before


def test_what_cannot_be_read_is_said_in_a_sentence(tmp_path: Path) -> None:
    empty = run(tmp_path)
    assert empty.returncode == 1
    assert empty.stderr == f"Nothing was measured: there is no new/estimates.json below {tmp_path}.\n"
    broken = Estimates(tmp_path).add(("walks", "slab", "hot"), 1, 2, 3)
    for content in ("{", "{}", "[]", '{"median": {"point_estimate": 2}}'):
        broken.write_text(content, encoding="utf-8")
        failed = run(tmp_path)
        assert failed.returncode == 1
        assert failed.stderr.startswith(f"{broken} is not an estimate of criterion: ")
        assert failed.stderr.count("\n") == 1
    missing = run(tmp_path, "--page", tmp_path / "none.md")
    assert missing.returncode == 1 and missing.stdout == ""


def test_every_table_of_the_page_is_filled_and_has_a_verdict() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = dict(BLOCK.findall(text))
    assert text.count("<!-- table: ") == text.count("<!-- end of table -->") == len(blocks) > 20
    assert "with `make ablations`" in blocks.pop("the machine")
    for name, block in blocks.items():
        assert re.search(r"^\| .*\*\*[\d.,]+\*\*", block, re.MULTILINE), name
    for section in text.split("\n## ")[1:]:
        assert "**Verdict.**" in section or "<!-- table: the machine -->" in section, section.splitlines()[0]


def test_the_figures_in_the_verdicts_are_those_of_the_tables() -> None:
    """Computed from the rounded medians that the tables show, and so to within their rounding."""
    text = PAGE.read_text(encoding="utf-8")
    medians: dict[tuple[str, str, str], float] = {}
    for name, block in BLOCK.findall(text)[1:]:  # the first one is about the machine
        header, _, *rows = [line[2:-2].split(" | ") for line in block.splitlines() if line.startswith("|")]
        for row, *cells in rows:
            for column, cell in zip(header[1:], cells, strict=True):
                if cell != "–":
                    medians[name, row, column] = float(cell.split(" ")[0].strip("*").replace(",", ""))
    figures = re.findall(r"<!-- (times|percent): ([^>]*?) -->([^<]*)<!-- end -->", text)
    assert len(figures) > 20
    for unit, what, said in figures:
        rows, _, columns = " ".join(what.split()).partition(" @ ")
        (group, row), (*other_group, other) = (side.split(" | ") for side in rows.split(" / "))
        found = [
            median / medians[key]
            for (one, name, column), median in medians.items()
            if fnmatchcase(one, group) and fnmatchcase(name, row) and (not columns or column in columns.split("; "))
            for key in medians
            if key[2] == column and fnmatchcase(key[1], other) and key[0] == (other_group or [one])[0]
        ]
        ends = [
            float(end.replace(",", "")) / (100 if unit == "percent" else 1) for end in said.rstrip(" %").split(" to ")
        ]
        assert (ends[0], ends[-1]) == pytest.approx((min(found), max(found)), rel=0.06), what
    assert not re.search(r"^<!-- (times|percent)", text, re.MULTILINE), "Markdown would end the paragraph there"
