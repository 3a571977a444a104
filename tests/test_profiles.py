"""The profiles: reading what py-spy writes, and the load that it samples."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from implementations import Implementation

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # profiles is no installed package

from profiles import folded, load, record  # noqa: E402

STACKS = """\
_bootstrap (threading.py:1002);run (profiles/load.py:97);match (profiles/load.py:64) 30
_bootstrap (threading.py:1002);run (profiles/load.py:97);match (profiles/load.py:64);walk (reference/tree.py:9) 12

_bootstrap (threading.py:1002);run (profiles/load.py:97);schedule (profiles/load.py:88) 50
<module> (profiles/load.py:140) 1
"""


def test_each_sample_counts_for_the_role_that_its_stack_runs() -> None:
    roles = {"match": "matchers", "insert_and_evict": "writer", "schedule": "scheduler"}
    counts = folded.samples_by_role(STACKS.splitlines(), roles)
    assert counts == {"matchers": 42, "writer": 0, "scheduler": 50, folded.OTHER: 1}


def test_a_frame_below_a_role_does_not_take_its_samples() -> None:
    stack = "match (profiles/load.py:64);schedule (elsewhere.py:1) 7"
    assert folded.samples_by_role([stack], {"match": "matchers", "schedule": "scheduler"})["matchers"] == 7


def test_names_with_spaces_and_digits_stay_whole() -> None:
    assert list(folded.read(["a b (c d.py:1);<genexpr> (e.py:22) 3"])) == [
        (("a b (c d.py:1)", "<genexpr> (e.py:22)"), 3)
    ]


@pytest.mark.parametrize("line", ["no samples", "a;b", "a;b -3", " 4", "a;b 1.5"])
def test_a_line_that_is_no_stack_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=r"line 2 is not a folded stack"):
        list(folded.read(["a;b 1", line]))


def test_the_roles_are_functions_of_the_load() -> None:
    for name in record.ROLES:
        assert callable(getattr(load, name))


def test_the_load_runs_every_role_and_ends_when_told(implementation: Implementation) -> None:
    if ":" in implementation.name:
        pytest.skip("the load makes its cache by name")
    command = [sys.executable, "-m", "profiles.load", implementation.name, "2", "4"]
    done = subprocess.run(command, input="\n\n", capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    ready, first, second = map(json.loads, done.stdout.splitlines())
    assert ready["pid"] > 0
    assert ready["alone"] > 0
    for name in ("matches", "inserts", "progress"):
        assert 0 < first[name] <= second[name]


def test_a_load_that_cannot_start_is_one_sentence() -> None:
    with pytest.raises(record.CannotRecord, match="ended early"), record.load("no such tree", 1, 1):
        pass


def test_a_missing_sampler_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(record, "sys", SimpleNamespace(executable=str(tmp_path / "python")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(record.CannotRecord, match="py-spy is not installed"):
        record.find_py_spy()


def test_a_sampler_that_cannot_attach_is_one_sentence(tmp_path: Path) -> None:
    refuses = tmp_path / "py-spy"
    refuses.write_text("#!/bin/sh\necho 'Permission Denied: not yours' >&2\nexit 1\n")
    refuses.chmod(0o755)
    with pytest.raises(record.CannotRecord, match=r"cannot attach to process 1 .*Permission Denied: not yours"):
        record.attach(str(refuses), 1, "raw", tmp_path / "out", rate=10, seconds=1, blocking=True)


def test_the_table_shows_each_implementation_beside_its_control() -> None:
    rates = record.Rates(matches=1000, inserts=10, progress=50)
    held = {"matchers": 0.5, "writer": 0.25, "scheduler": 0.2, folded.OTHER: 0.0}
    shown = record.table([record.Profile("rust", 100, rates, record.Rates(900, 9, 40), held)])
    rows = list(zip(*(column.cells for column in shown.columns), strict=True))
    assert rows == [
        ("rust", "75%", "20%", "900", "9", "40%"),
        ("  not profiled", "", "", "1,000", "10", "50%"),
    ]


def test_a_flame_graph_is_not_named_after_the_machine_that_drew_it(tmp_path: Path) -> None:
    picture = tmp_path / "rust.svg"
    picture.write_text('<svg><text id="title" x="50%">/home/me/py-spy record --gil</text><text>match</text></svg>')
    record.entitle(picture, "rust: who holds the GIL")
    assert picture.read_text() == '<svg><text id="title" x="50%">rust: who holds the GIL</text><text>match</text></svg>'
