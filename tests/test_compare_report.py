"""What `triradix compare` shows, the command itself, and where it finds the peers."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from html_page import Page
from rich.console import Console

from triradix.cli import main
from triradix.compare import peers as peers_module
from triradix.compare.bars import FORMS, MATCH, PAGES
from triradix.compare.command import WIDTH
from triradix.compare.driver import Measured, Run
from triradix.compare.page import render_page
from triradix.compare.peers import find, find_or_make, make
from triradix.compare.report import Report, amount, apart, make_report, number, speed_text, write_json
from triradix.compare.row import QUICK
from triradix.compare.rows import choose, make_works
from triradix.compare.systems import SYSTEMS
from triradix.compare.table import footnotes, nothing_lost, print_table
from triradix.environments import EnvironmentMissing
from triradix.files import make_room, put


def report(rows: str = "*", **figures: list[float]) -> Report:
    """Every row with the same figures: those given, by system (with _ for -), else some that meet every bar."""
    works = choose(make_works(QUICK), rows.split(","))
    given = {name.replace("_", "-"): rounds for name, rounds in figures.items()}
    measured = {}
    for work in works:
        for row in work.rows:
            at = measured[row.name] = Measured()
            if work.machine:
                at.floor = [5.0, 6.0, 7.0]
                continue
            for number_, system in enumerate(SYSTEMS):
                ours = [1.0, 1.1, 1.2] if row.lower_is_better else [2.0, 2.0, 2.0]
                at.rounds[system.name] = given.get(
                    system.name, ours if system.name != "dynamo" else [3e5 + number_] * 3
                )
            if row.floor:
                at.floor = [1e6] * 3
    versions = {system.name: "1.2" for system in SYSTEMS}
    return make_report(works, SYSTEMS, QUICK, Run(measured, versions, {}, True), "triradix compare --quick --seed '0'")


def test_the_layout_of_the_json() -> None:
    made = report()
    assert json.loads(write_json(made)) == made
    assert made["schema"] == 1
    assert made["quick"] is True
    assert {"cpu", "cores", "python", "system"} <= set(made["machine"])
    assert {"made", "commit", "systems", "rows"} <= set(made)
    for system in made["systems"]:
        assert {"name", "label", "version", "ours", "missing"} == set(system)
    for row in made["rows"]:
        assert {
            "name", "title", "section", "unit", "lower_is_better", "every_core", "parameters", "bar", "floor", "cells",
            "lost"
        } == set(row)  # fmt: skip
        assert row["bar"] is None or set(row["bar"]) == {"system", "versus", "ratio", "text"}
        for cell in row["cells"].values():
            assert {"median", "q1", "q3", "rounds", "ratio", "quotient", "bars", "met", "missing"} <= set(cell)
            assert cell["ratio"] is None or set(cell["ratio"]) == {"versus", "median", "low", "high"}


def test_bars_are_judged_by_the_ratio_of_the_same_rounds() -> None:
    fast = report("hot-128", rust=[1.0, 2.0, 3.0], sglang_rust_raw=[6.0, 12.0, 18.0], cython=[1.4, 2.8, 4.2])
    (row,) = fast["rows"]
    assert row["bar"] == {
        "system": "rust",
        "versus": "sglang-rust-raw",
        "ratio": 0.2,
        "text": "Rust at most 1/5 of SGLang-Rust raw",
    }
    assert row["cells"]["rust"]["met"] is True
    assert row["cells"]["rust"]["ratio"]["median"] == pytest.approx(1 / 6)
    assert row["cells"]["cython"]["met"] is True

    (row,) = report("hot-128", rust=[1.0] * 3, sglang_rust_raw=[4.0] * 3, cython=[1.6] * 3)["rows"]
    assert row["cells"]["rust"]["met"] is False
    assert row["cells"]["cython"]["met"] is False
    lost = " | ".join(row["lost"])
    assert "Rust (ours) takes 1/4 (1/4–1/4) of what SGLang-Rust raw takes, more than 1/5;" in lost
    assert "Cython (ours) takes 1.60× (1.60×–1.60×) of what Rust (ours) takes, more than 1.50×;" in lost


@pytest.mark.parametrize("name", ["hot-128", "short-insert", "list-8k", "page16-1k", "batch-single", "waiting"])
def test_plain_python_behind_sglangs_is_told(name: str) -> None:
    """In every row, once, and beside no other peer."""

    def told(ours: float, theirs: float) -> list[str]:
        made = report(name, reference=[ours] * 3, sglang_py=[theirs] * 3, sglang_rust_raw=[1.0] * 3)
        label = next(system["label"] for system in made["systems"] if system["name"] == "reference")
        return [sentence for sentence in made["rows"][0]["lost"] if sentence.startswith(label)]

    (sentence,) = told(10.0, 9.0)
    assert "SGLang-Py" in sentence
    assert told(9.0, 10.0) == []


def test_slack_in_ns_is_enough_for_short_calls() -> None:
    close = report("short-match", rust=[0.069] * 3, cython=[0.05] * 3, reference=[9.0] * 3)["rows"][0]
    assert close["cells"]["rust"]["met"] is True
    far = report("short-match", rust=[0.071] * 3, cython=[0.05] * 3, reference=[9.0] * 3)["rows"][0]
    assert far["cells"]["rust"]["met"] is False


def test_nothing_at_all_beside_something() -> None:
    good = report("gc-pause", rust=[0.0] * 3, cython=[0.0] * 3, sglang_rust=[0.0] * 3)["rows"][0]
    assert good["cells"]["rust"]["met"] is True
    bad = report("gc-pause", rust=[2.0] * 3, cython=[0.0] * 3, sglang_rust=[0.0] * 3)["rows"][0]
    assert bad["cells"]["rust"]["met"] is False
    assert "Rust (ours) is behind SGLang-Rust, which takes nothing" in bad["lost"]


def test_higher_can_be_better() -> None:
    assert report("threads-bar", rust=[1.1] * 3)["rows"][-1]["cells"]["rust"]["met"] is True
    slow = report("threads-bar", rust=[0.9] * 3)["rows"][-1]
    assert slow["cells"]["rust"]["met"] is False
    assert "Rust (ours): 0.9 ×; the bar: Rust: at least 1" in slow["lost"]


def test_a_busy_machine_is_told() -> None:
    made = report("threads-bar")
    assert "busy" not in " ".join(footnotes(made))
    made["load"] = 1.0 * made["machine"]["cores"]
    assert "the rows on every core say little then" in " ".join(footnotes(made))


def test_python_threads_are_held_against_the_gil() -> None:
    rows = {row["name"]: row for row in report("gil-*", rust=[0.95] * 3, cython=[0.5] * 3, reference=[1.2] * 3)["rows"]}
    assert [rows["gil-kept"]["cells"][name]["met"] for name in ("reference", "cython", "rust")] == [None, False, True]
    assert [rows["gil-threads-2"]["cells"][name]["met"] for name in ("reference", "cython", "rust")] == [
        False,
        None,
        None,
    ]


def test_a_figure_that_misses_its_bar_looks_different_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Rounded to three digits both figures would be the bar itself."""
    made = report("batch-ratio,hot-128", rust=[0.20004] * 3, sglang_rust_raw=[1.0] * 3, cython=[0.60001] * 3)
    rows = {row["name"]: row for row in made["rows"]}
    assert (
        "Rust (ours) takes 1/4.999 (1/4.999–1/4.999) of what SGLang-Rust raw takes, more than 1/5; the bar: Rust at "
        "most 1/5 of SGLang-Rust raw"
    ) in rows["hot-128"]["lost"]
    assert rows["batch-ratio"]["lost"] == ["Cython (ours): 0.60001 ×; the bar: at most 0.6"]
    assert rows["hot-128"]["cells"]["rust"]["bars"] == [{"versus": "sglang-rust-raw", "limit": 0.2, "met": False}]
    for shown in (render_page(made), _printed(made, capsys)):
        assert "0.60001 " in shown
        assert "1/4.999" in shown
    assert [apart(0.60001, limits, number) for limits in ([], [0.5], [0.6])] == ["0.6", "0.6", "0.60001"]


def _printed(made: Report, capsys: pytest.CaptureFixture[str]) -> str:
    print_table(made, Console(width=118))
    return capsys.readouterr().out


def test_a_row_names_a_bar_that_this_run_can_judge() -> None:
    works = choose(make_works(QUICK), ["hot-128"])
    ours = {system.name: [1.0] * 3 for system in SYSTEMS[:3]}
    run = Run({"hot-128": Measured(ours)}, dict.fromkeys(ours, "1"), {}, True)
    made = make_report(works, SYSTEMS, QUICK, run, "triradix compare")
    assert made["rows"][0]["bar"]["text"] == "Cython at most 1.5 × Rust"
    notes = " ".join(footnotes(made))
    assert "(Cython to our Rust)" in notes
    assert nothing_lost(made) == "Ours miss no bar; no peer was measured"
    assert nothing_lost(report("hot-128")) == "Ours miss no bar and lose to no peer"
    assert "SGLang" not in notes


def test_what_a_ratio_is_to_is_said_also_where_it_is_unusual(capsys: pytest.CaptureFixture[str]) -> None:
    made = report("hot-128,short-match")
    versus = {(row["section"], name): cell["ratio"]["versus"]
              for row in made["rows"] for name, cell in row["cells"].items() if cell["ratio"]}  # fmt: skip
    assert versus["Calls of 16 tokens", "rust"] == "cython" and versus["Matching", "rust"] == "sglang-rust-raw"
    said = (
        "the ratio (Rust to SGLang-Rust raw, Cython to our Rust, Python to SGLang-Py; "
        "in “Calls of 16 tokens” Cython to Python, Rust to Cython), where 1/5 means"
    )
    for shown in (_printed(made, capsys), " ".join(Page(render_page(made)).words)):
        assert said in " ".join(shown.split())
    alone = report("short-evict")
    assert "in “Calls of 16 tokens” Cython to Python" in " ".join(footnotes(alone))


def test_the_narrowest_table_shows_every_figure_whole(capsys: pytest.CaptureFixture[str]) -> None:
    made = report("hot*,batch*", rust=[0.08337] * 3, cython=[0.08123] * 3, sglang_rust_raw=[0.7891] * 3)
    for row in made["rows"]:
        if row["floor"] is not None:
            row["floor"] = 0.00357
    print_table(made, Console(width=WIDTH))
    shown = capsys.readouterr().out
    assert shown.count("0.00357") == sum(row["floor"] is not None for row in made["rows"])


def test_rows_on_every_core_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    made = report("threads-bar,hot-128")
    assert {row["name"]: row["every_core"] for row in made["rows"]} == {
        "hot-128": False, "threads-2": True, "threads-ceiling": True, "threads-bar": True
    }  # fmt: skip
    for shown in (render_page(made), _printed(made, capsys)):
        assert "but in the rows that say “on every core”" in " ".join(shown.split())
    assert render_page(made).count("× (on every core)") == 3


def test_the_page_stands_alone() -> None:
    made = report(rust=[0.5] * 3)
    text = render_page(made)
    page = Page(text)
    assert page.open == []
    assert page.stands_alone
    assert page.curves == len(SYSTEMS) + 1 + len(SYSTEMS), "time with the floor, and the multiple of the floor"
    words = " ".join(page.words)
    heading, command = "Bars missed, peers ahead", "triradix compare --quick --seed '0'"
    for expected in (*(system.label for system in SYSTEMS), heading, command):
        assert expected in words
    assert text.index("Bars missed, peers ahead") < text.index("<figure>") < text.index("<table")
    assert "nan" not in words.lower().split()


def test_every_figure_stands_with_its_quartiles_and_every_ratio_with_its_interval(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = report("hot-128", rust=[1.0, 2.0, 3.0], sglang_rust_raw=[5.0, 11.0, 18.0])
    page, printed = render_page(made), _printed(made, capsys)
    for quartiles in ("1.5–2.5", "8–14.5"):
        assert f"<small>{quartiles}</small>" in page
        assert quartiles in printed
    assert "<small>1/5.5 (1/6–1/5)</small>" in page
    assert "(1/6–1/5)" in printed


def test_every_match_has_a_floor() -> None:
    """But a figure that is itself a ratio, or bytes."""
    works = make_works(QUICK)
    without = {
        row.name for work in works for row in work.rows
        if not (row.floor or row.unit in ("×", "B")) and ("match" in row.title or row.section in (MATCH, FORMS, PAGES))
    }  # fmt: skip
    assert without == set()


def test_the_floor_of_many_matches_leaves_each_its_150_ns() -> None:
    (row,) = report("waiting", rust=[2.0] * 3)["rows"]
    assert row["floor"] == 1.0  # ms
    matches = QUICK.waiting
    assert row["cells"]["rust"]["within_floor"] is (2.0 <= 1.35 + 150e-6 * matches)
    (row,) = report("list-8k", rust=[1e9] * 3)["rows"]
    assert row["cells"]["rust"]["quotient"] == 1000
    assert row["cells"]["rust"]["within_floor"] is None, "its own bar says what a token of a list may take"


def test_the_page_escapes_and_bears_what_is_missing() -> None:
    made = report("evict")
    made["rows"][0]["title"] = "<script>alert(1)</script>"
    made["rows"][0]["cells"]["rust"] |= {"median": None, "missing": 'says "no" & <b>'}
    text = render_page(made)
    assert "<script>alert" not in text
    assert "&quot;no&quot; &amp; &lt;b&gt;" in text
    assert "This run has not the two lengths that a curve needs." in text


def test_the_table_fits_and_tells_the_losses_first(capsys: pytest.CaptureFixture[str]) -> None:
    made = report()
    made["systems"][6]["missing"] = "not installed: no network"
    print_table(made, Console(width=100))
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    assert shown.startswith("Bars missed, peers ahead: ")
    assert shown.index("Bars missed, peers ahead") < shown.index("Matching")
    for section in ("Matching", "Memory over time", "What the machine itself takes"):
        assert section in shown
    assert "Dynamo is not in the table: not installed: no network" in shown


def test_no_losses_are_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(report("hot-128", sglang_rust_raw=[99.0] * 3), Console(width=100))
    assert capsys.readouterr().out.startswith("Ours miss no bar and lose to no peer.")


def test_numbers_for_people() -> None:
    assert [number(value) for value in (0, 0.1234, 12.345, 1234.5)] == ["0", "0.123", "12.3", "1,234"]
    assert [amount(0.0123, "µs"), amount(12.3, "µs"), amount(3, "B")] == ["12.3 ns", "12.3 µs", "3 B"]
    assert [speed_text(value) for value in (2, 1, 0.2, 0.0025)] == ["2.00×", "1.00×", "1/5", "1/400"]
    assert speed_text(0.2, lower_is_better=False) == "0.20×"


# The command


def compare(*arguments: Any) -> int:
    return main(["compare", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_command_measures_and_writes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--quick", "--rounds", 2, "--rows", "hot-16,hot-128", "--peers", "none") == 0
    shown = capsys.readouterr()
    assert "hot match of 16 tokens" in shown.out
    assert "out/compare.json and out/compare.html written" in shown.out
    assert "no peers: --peers none" in shown.err
    made = json.loads(Path("out/compare.json").read_text())
    assert made["command"] == "triradix compare --quick --rows hot-16,hot-128 --peers none --rounds 2 --seed 0"
    assert [system["missing"] for system in made["systems"]] == [None] * 3 + ["not installed: --peers none"] * 4
    assert [len(made["rows"][0]["cells"][name]["rounds"]) for name in ("reference", "cython", "rust")] == [2, 2, 2]
    assert "<figure>" in Path("out/compare.html").read_text()


def test_a_system_of_ours_that_is_not_built_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = folder / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text("import sys\nsys.modules['_triradix_rust'] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(blocked))
    assert compare("--quick", "--rounds", 1, "--rows", "hot-16", "--systems", "reference,rust") == 1
    shown = capsys.readouterr()
    assert "Rust (ours) is left out: ImportError" in shown.err
    assert json.loads(Path("out/compare.json").read_text())["rows"][0]["cells"]["reference"]["median"] > 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rows", "warm"], "no row is called 'warm'; there are: hot-16, "),
        (["--json", "x", "--html", "x"], "--json and --html both name x"),
        (["--html", "."], ". cannot be written: it is a folder"),
        (["--json", "file/x"], "file cannot be made: File exists"),
        (["--systems", "sglang-py", "--peers", "none"], "none of the systems can run"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    Path("file").write_text("")
    assert compare("--quick", "--rounds", 1, *arguments) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("triradix compare: error: ")
    assert sentence in last


def test_a_full_disk_leaves_what_was_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("kept.json").write_text("of the run before")
    Path("kept.json").chmod(0o640)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # as if it were full
    try:
        code = compare("--quick", "--rounds", 1, "--rows", "hot*", "--systems", "reference", "--json", "kept.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert code == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "triradix compare: error: kept.json cannot be written: File too large"
    )
    assert Path("kept.json").read_text() == "of the run before"
    assert sorted(path.name for path in folder.rglob("*")) == ["kept.json", "out"]
    put(Path("kept.json"), "of the next")
    assert Path("kept.json").read_text() == "of the next"
    assert Path("kept.json").stat().st_mode & 0o777 == 0o640


def test_where_nothing_can_be_written_nothing_is_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file system without room for it, such as /proc."""
    assert compare("--quick", "--rows", "hot-16", "--systems", "reference", "--json", "/proc/compare.json") == 2
    said = capsys.readouterr().err.splitlines()
    assert said == ["triradix compare: error: /proc/compare.json cannot be written: No such file or directory"]


def test_what_is_no_plain_file_is_written_to(folder: Path) -> None:
    Path("link").symlink_to("behind")
    put(Path("link"), "text")
    assert Path("link").is_symlink() and Path("behind").read_text() == "text"
    make_room(Path("/dev/null"))
    put(Path("/dev/null"), "text")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--systems", "rust,sglang"], "no system is called 'sglang'; there are: reference, cython, rust, sglang-py, "),
        (["--rounds", "0"], "0 is not one of 1 … 10000"),
        (["--rounds", "x"], "'x' is not an integer"),
        (["--seed", "-1"], "-1 is not one of 0 … "),
        (["--peers", ""], "it names no folder"),
    ],
)
def test_bad_arguments(capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["compare", *arguments])
    assert raised.value.code == 2
    assert sentence in capsys.readouterr().err


# The peers


def fake_peers(folder: Path) -> None:
    (folder / "venv/bin").mkdir(parents=True)
    (folder / "venv/bin/python").symlink_to(sys.executable)
    (folder / "sgl/sglang").mkdir(parents=True)


def test_peers_are_found_where_they_are(folder: Path) -> None:
    assert find(folder) is None
    fake_peers(folder)
    found = find(folder)
    assert found is not None
    assert (found.python, found.sglang) == (folder / "venv/bin/python", folder / "sgl")
    assert find_or_make(str(folder)) == found
    with pytest.raises(EnvironmentMissing, match=r"`--peers .peers` installs them"):
        find_or_make(None)
    fake_peers(folder / ".peers")
    assert find_or_make(None).sglang == folder / ".peers/sgl"


def test_peers_that_cannot_be_loaded_leave_the_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake_peers(folder)
    assert (
        compare("--quick", "--rounds", 1, "--rows", "hot-16", "--systems", "reference,sglang-py", "--peers", ".") == 3
    )
    assert "SGLang-Py is left out: " in capsys.readouterr().err
    assert " --systems reference,sglang-py --peers . " in json.loads(Path("out/compare.json").read_text())["command"]


def test_why_peers_cannot_be_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_module, "_BYTES", 10**18)
    with pytest.raises(EnvironmentMissing, match="GB free, and they take about"):
        make(folder)
    monkeypatch.setattr(peers_module, "_BYTES", 0)

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        fails = "install" in command
        return subprocess.CompletedProcess(command, fails, "", "noise\nERROR: no matching distribution\nhint" * fails)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(EnvironmentMissing, match=r"^torch==\d.* cannot be installed: no matching distribution$"):
        make(folder)
    (folder / "file").write_text("")
    with pytest.raises(EnvironmentMissing, match="cannot be made"):
        make(folder / "file" / "peers")
    monkeypatch.setattr("platform.system", lambda: "Plan 9")
    with pytest.raises(EnvironmentMissing, match="for Linux, not Plan 9"):
        make(folder)
