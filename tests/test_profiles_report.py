"""The pages of the profiles: flame graphs, the differences of two recordings, the report in plain words."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from profile_samples import WALKS, make_profiles

from asv_benchmarks.site.offline import refuse_other_hosts
from profiles import compare, flamegraph, rows, table, waits, words
from profiles.__main__ import main
from profiles.report import read_stacks
from triradix import IMPLEMENTATIONS

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    make_profiles(tmp_path)
    return tmp_path


def boxes(picture: str) -> dict[str, tuple[float, float, int, str]]:
    """Title → left and width in percent, row, fill."""
    found = {}
    for box in ElementTree.fromstring(picture).iter(f"{SVG}svg"):
        if (box.get("class") or "").startswith("box"):
            title, rect = box.find(f"{SVG}title"), box.find(f"{SVG}rect")
            assert title is not None and rect is not None
            place = (float(box.get("x", "").rstrip("%")), float(box.get("width", "").rstrip("%")))
            found[title.text or ""] = (*place, int(box.get("y", "")) // flamegraph.ROW, rect.get("fill", ""))
    return found


def test_a_box_is_as_wide_as_its_share_and_below_its_caller() -> None:
    found = boxes(flamegraph.flame_graph({("a", "b"): 30, ("a",): 30, ("a", "c <&>"): 20, ("d",): 20}, "t").file())
    assert {title: place[:3] for title, place in found.items()} == {
        "all\n100.0%": (0, 100, 0),
        "a\n80.0%": (0, 80, 1),
        "b\n30.0%": (0, 30, 2),
        "c <&>\n20.0%": (30, 20, 2),
        "d\n20.0%": (80, 20, 1),
    }


def test_the_colour_of_a_box_is_its_language() -> None:
    languages = {
        WALKS[name]: language for name, language in zip(IMPLEMENTATIONS, ("python", "cython", "rust"), strict=True)
    }
    languages |= {"syscall (libc.so.6)": "native", "<module> (a.py:1)": "python"}
    languages |= {"match (_triradix_rust.abi3.so)": "rust", "f (cython_impl/walk.cpython-311-x86_64.so)": "cython"}
    assert {frame: flamegraph.language(frame) for frame in languages} == languages


def test_a_difference_shows_what_is_gained_and_what_is_lost() -> None:
    before = {("f (a.py:1)", "lost (a.py:5)"): 2, ("f (a.py:1)", "same (a.py:9)"): 2}
    after = {("f (a.py:3)", "gained (b.py:1)"): 1, ("f (a.py:4)", "same (a.py:11)"): 1}
    found = boxes(flamegraph.differential(before, after, "t").file())
    assert {title: place[1] for title, place in found.items()} == {
        "all\n100.0% → 100.0%": 100,
        "f (a.py)\n100.0% → 100.0%": 100,  # an edit above it makes no other function of it
        "lost (a.py)\n50.0% → 0.0%": 25,
        "gained (b.py)\n0.0% → 50.0%": 25,
        "same (a.py)\n50.0% → 50.0%": 50,
    }
    red, blue, white = (found[title][3] for title in found if title.startswith(("gained", "lost", "same")))
    fills = {title.split(" ")[0]: place[3] for title, place in found.items()}
    assert re.fullmatch(r"#ff(..)\1", fills["gained"])
    assert re.fullmatch(r"#(..)\1ff", fills["lost"])
    assert fills["same"] == "#ffffff"
    assert len({red, blue, white}) == 3


def test_recordings_of_different_lengths_are_compared_by_shares() -> None:
    short, long = {("a", "b"): 1, ("a",): 3}, {("a", "b"): 100, ("a",): 300}
    assert compare.changes(short, long) == []
    assert compare.changes({("a", "a", "b"): 1}, {("a", "c"): 1}) == [
        compare.Change("b", 1, 0),
        compare.Change("c", 0, 1),
    ]


def test_two_recordings_are_compared_by_any_of_their_files(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{name}-0123456789ab-4-gil" for name in ("reference", "rust")]
    assert main(["compare", str(recorded / f"{names[0]}.svg"), str(recorded / names[1])]) == 0
    said = capsys.readouterr().out
    assert "reference/walk.py" in said and "walk.rs" in said
    page = (recorded / f"{names[0]}..{names[1]}.html").read_text()
    assert page.count('class="flames"') == 3
    assert "look-ups/s" in page  # what was done meanwhile
    assert boxes((recorded / f"{names[0]}..{names[1]}.svg").read_text())
    refuse_other_hosts(recorded)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file"),
        ("", "holds no samples"),
        ("a;b 0\n", "holds no samples"),
        ("a;b\n", "line 1 is not a folded stack"),
    ],
)
def test_a_recording_that_is_none_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "a.folded").write_text(content)
    assert main(["compare", str(tmp_path / "a.folded"), str(tmp_path / "a.folded")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("profiles: ") and reason in said and said.count("\n") == 1


def test_a_stack_that_is_written_twice_counts_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.folded"
    path.write_text("f (a.py:1);g (a.py:2) 30\nf (a.py:1) 40\nf (a.py:1);g (a.py:2) 30\n")
    assert read_stacks(path) == {("f (a.py:1)", "g (a.py:2)"): 60, ("f (a.py:1)",): 40}


def test_two_kinds_of_recordings_are_told_apart(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (f"rust-0123456789ab-4-{kind}" for kind in ("gil", "idle"))
    assert main(["compare", str(recorded / first), str(recorded / second)]) == 0
    warning = "These are two different things: who holds the GIL, and who runs or waits"
    assert warning in " ".join(capsys.readouterr().out.split())
    assert warning in (recorded / f"{first}..{second}.html").read_text()


@pytest.mark.parametrize(
    ("beside", "code", "reason"),
    [('{"made": "by another program"}', 0, ""), ("[1]", 0, ""), ("{", 1, "cannot be read")],
)
def test_what_stands_beside_a_recording_may_be_another_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], beside: str, code: int, reason: str
) -> None:
    (tmp_path / "a.folded").write_text("f (a.py:1) 1\n")
    (tmp_path / "a.json").write_text(beside)
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "a")]) == code
    said = capsys.readouterr().err
    assert said.count("\n") == bool(reason) and reason in said


def test_a_place_that_takes_no_page_is_one_sentence(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = str(recorded / "rust-0123456789ab-4-gil")
    assert main(["compare", one, one, "--out", "/proc/page.html"]) == 1
    assert re.fullmatch(r"profiles: /proc/[^ ]*: No such file or directory\n", capsys.readouterr().err)


@pytest.mark.parametrize("summary", ["{}", "[1]", '{"machine": {}, "load": 1}'])
def test_a_summary_that_lacks_something_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], summary: str
) -> None:
    (tmp_path / "summary.json").write_text(summary)
    assert main(["report", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"profiles: what {tmp_path} holds cannot be shown: ") and said.count("\n") == 1


def test_the_report_holds_everything_and_loads_nothing(recorded: Path) -> None:
    assert main(["report", "--out", str(recorded)]) == 0
    refuse_other_hosts(recorded)
    page = (recorded / "report.html").read_text()
    # 3 kinds at 2 numbers of threads: one picture for each tree, one for each pair.
    assert page.count('class="flames"') == 3 * 2 * (3 + 3)
    assert page.count('class="chart"') == 6
    for text in ("--native --idle", "0123456789ab", "A CPU", "generation", "200,000", *rows.COLUMNS):
        assert text in page, text


def test_without_recordings_it_says_how_to_make_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"profiles: {tmp_path} holds no recordings: `make profile` makes them\n"


def test_what_is_printed_asks_nothing_of_the_encoding(tmp_path: Path) -> None:
    make_profiles(tmp_path / "ü")

    def printing(redirection: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "profiles", "report", "--out", str(tmp_path / "ü")]
        done = subprocess.run(
            ["bash", "-c", f'"$@" {redirection}; exit "${{PIPESTATUS[0]}}"', "-", *command],
            cwd=Path(__file__).parent.parent,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, done.stderr

    assert printing("") == (0, f"{tmp_path}/\\xfc/report.html shows everything\n", "")
    assert printing(">&-") == (0, "", "")
    assert printing("| true")[::2] == (141, "")
    code, _, said = printing(">/dev/full")
    assert code == 1 and re.fullmatch(r"profiles: .*No space left on device\n", said)


def test_a_row_holds_the_figures_of_its_run(recorded: Path) -> None:
    summary = json.loads((recorded / "summary.json").read_text())
    run = next(run for run in summary["runs"] if (run["implementation"], run["matchers"]) == ("rust", 4))
    cells = dict(zip(rows.COLUMNS, rows.row(run), strict=True))
    assert cells == {
        "matchers": "4",
        "GIL held by the cache": "65%",  # (4 · 30 + 10) of 200
        "by the scheduler": "25%",
        "a matcher waits for the GIL": "32%",  # 60 of 120 + 70
        "for another lock": "5%",
        "it runs": "40%",
        "look-ups/s": "600,000",
        "inserts/s": "100",
        "p99 of a call": "33.3 µs",
        "scheduler keeps": "50%",
    }
    run["recordings"]["idle"]["window"] = {**run["control"], "matches": 300_000.0}
    assert rows.cost_row(run) == ["4", "600,000/s", "100%", "100%", "50%"]
    run["control"]["p99"] = None
    run["control"]["matches"] = 0
    assert rows.row(run)[8] == "none ended"
    assert rows.cost_row(run)[2] == "none were made"
    assert [len(one.columns) for one in table.tables(summary)] == [7, 7, 6]


def test_the_words_say_what_the_figures_say(recorded: Path) -> None:
    summary = json.loads((recorded / "summary.json").read_text())
    said = words.sentences(summary)
    assert said[0].startswith("reference, 1 matcher: the cache's threads held the GIL 20% of the time")
    assert "kept 50% of its speed" in said[0]
    slower = [sentence for sentence in said if "More threads than 1 make it slower" in sentence]
    assert len(slower) == 1 and slower[0].startswith("cython, from 1 to 4 matchers: 200,000 → 100,000")
    assert "at 4 each waits 32% of its time for the GIL and 5% for another lock" in slower[0]
    assert not any("no success by itself" in sentence for sentence in said[3:6])


def test_a_small_share_with_less_work_is_called_none_of_a_success(recorded: Path) -> None:
    summary: dict[str, Any] = json.loads((recorded / "summary.json").read_text())
    firsts = {run["implementation"]: run for run in summary["runs"] if run["matchers"] == 1}
    firsts["cython"]["recordings"]["gil"]["shares"].update(matchers=0.01, writer=0.0)
    said = words.sentences(summary)[-1]
    assert said == (
        "A small share of the GIL is no success by itself: with 1 matcher cython held it least, but rust "
        "looked up more."
    )
    firsts["rust"]["recordings"]["gil"]["shares"].update(matchers=0.0, writer=0.0)
    assert not any("no success by itself" in sentence for sentence in words.sentences(summary))


def test_a_lack_of_processors_is_said(recorded: Path) -> None:
    summary: dict[str, Any] = json.loads((recorded / "summary.json").read_text())
    assert not any("Processors" in sentence for sentence in words.sentences(summary))
    summary["runs"][1]["control"]["processor"]["scheduler"]["queued"] = 0.31
    assert "had none up to 31% of the time" in words.sentences(summary)[-1]
    last = summary["runs"][1]
    (scaling,) = (sentence for sentence in words.sentences(summary) if "shortage" in sentence)
    assert scaling.startswith(f"{last['implementation']}, from 1 to {last['matchers']} matchers: ")


def test_one_key_is_one() -> None:
    assert [rows.matchers_text(number) for number in (1, 2)] == ["1 matcher", "2 matchers"]
    assert [rows.keys_text(batch) for batch in (1, 64)] == ["1 key a call", "64 keys a call"]


def test_a_gain_beyond_the_cores_is_no_scaling(recorded: Path) -> None:
    summary: dict[str, Any] = json.loads((recorded / "summary.json").read_text())
    first, last = (run for run in summary["runs"] if run["implementation"] == "reference")
    summary["machine"]["cores"] = 2
    first["control"].update(matches=1000.0, inserts=900.0)
    last["control"].update(matches=2000.0, inserts=300.0)
    (said,) = (sentence for sentence in words.sentences(summary) if sentence.startswith("reference, from"))
    assert "1,000 → 2,000 look-ups/s (2.00 times); inserts meanwhile: 900 → 300/s." in said
    assert "cores account for" not in said
    last["control"]["matches"] = 4000.0
    first["recordings"]["idle"]["states"]["matchers"][waits.GIL] = 0.85
    (said,) = (sentence for sentence in words.sentences(summary) if sentence.startswith("reference, from"))
    assert said.endswith("more than 2 cores account for: with 1 matcher a matcher waited 85% of its time for the GIL.")
