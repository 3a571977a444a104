"""The profiles: reading what py-spy writes, the load that it samples, and one real recording."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # profiles is no installed package

from profile_samples import GIL_WAIT, LOCK_WAIT, MATCH  # noqa: E402

from profiles import folded, load, pauses, record, sampler, waits  # noqa: E402
from profiles.__main__ import main  # noqa: E402

STACKS = """\
_bootstrap (threading.py:1002);run (profiles/load.py:97);match (profiles/load.py:64) 30
_bootstrap (threading.py:1002);run (profiles/load.py:97);match (profiles/load.py:64);walk (reference/tree.py:9) 12

_bootstrap (threading.py:1002);run (profiles/load.py:97);schedule (profiles/load.py:88) 50
<module> (profiles/load.py:140) 1
"""
SLEEPS = "import time\nprint('up', flush=True)\ntime.sleep(60)"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[str]]:
    """A Python program that does nothing."""
    with subprocess.Popen([sys.executable, "-c", SLEEPS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_each_sample_counts_for_the_role_that_its_stack_runs() -> None:
    counts = folded.samples_by_role(folded.read(STACKS.splitlines()), load.ROLES)
    assert counts == {"matchers": 42, "writer": 0, "scheduler": 50, folded.OTHER: 1}


def test_a_frame_below_a_role_does_not_take_its_samples() -> None:
    stack = "match (profiles/load.py:64);schedule (elsewhere.py:1) 7"
    assert folded.samples_by_role(folded.read([stack]), load.ROLES)["matchers"] == 7


def test_names_with_spaces_and_digits_stay_whole() -> None:
    assert list(folded.read(["a b (c d.py:1);<genexpr> (e.py:22) 3"])) == [
        (("a b (c d.py:1)", "<genexpr> (e.py:22)"), 3)
    ]


@pytest.mark.parametrize("line", ["no samples", "a;b", "a;b -3", " 4", "a;b 1.5"])
def test_a_line_that_is_no_stack_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=r"line 2 is not a folded stack"):
        list(folded.read(["a;b 1", line]))


def test_what_is_written_is_read_again() -> None:
    stacks = dict(folded.read(STACKS.splitlines()))
    assert dict(folded.read(folded.write(stacks).splitlines())) == stacks


def test_speedscope_becomes_folded_stacks_over_all_threads() -> None:
    frames = [
        {"name": "outer", "file": "a.py", "line": 3},
        {"name": "inner;most", "file": f"{ROOT}/reference/walk.py", "line": 7},
        {"name": "0x7f00", "file": "/lib/libc.so.6", "line": None},
    ]
    document = {
        "shared": {"frames": frames},
        "profiles": [{"samples": [[0, 1], [0, 1], [0]]}, {"samples": [[0, 1], [2], []]}],
    }
    stacks = folded.of_speedscope(document)
    assert stacks == {
        ("outer (a.py:3)", "inner,most (reference/walk.py:7)"): 3,
        ("outer (a.py:3)",): 1,
        ("[no name] (libc.so.6)",): 1,
        (folded.NO_FRAMES,): 1,
    }
    assert dict(folded.read(folded.write(stacks).splitlines())) == stacks


@pytest.mark.parametrize(
    ("path", "short"),
    [
        (f"{ROOT}/profiles/load.py", "profiles/load.py"),
        ("/anywhere/lib/python3.11/threading.py", "threading.py"),
        ("/anywhere/lib/python3.11/site-packages/triradix/reference/walk.py", "triradix/reference/walk.py"),
        ("/home/somebody/code/program.py", "somebody/code/program.py"),
        ("<frozen runpy>", "<frozen runpy>"),
        ("/lib/x86_64-linux-gnu/libc.so.6", "libc.so.6"),
    ],
)
def test_a_path_loses_what_is_this_machines(path: str, short: str) -> None:
    assert folded.short(path) == short


@pytest.mark.parametrize(
    ("native", "state"),
    [
        ((), waits.RUNNING),
        (("walk (cython_impl/walk.pyx:3)",), waits.RUNNING),
        (("pthread_cond_signal (libc.so.6)",), waits.RUNNING),
        (GIL_WAIT, waits.GIL),
        (("take_gil (ceval_gil.h:230)", "pthread_cond_timedwait (libc.so.6)"), waits.GIL),
        (("lock_PyThread_acquire_lock (python3.11)", *GIL_WAIT), waits.GIL),
        (("PyThread_acquire_lock_timed (python3.11)", "[no name] (libc.so.6)"), waits.LOCK),
        (LOCK_WAIT, waits.LOCK),
        (("exclusive_nap (cython_impl/exclusive.pyx:17)", "clock_nanosleep (libc.so.6)"), waits.LOCK),
        (("time_sleep (python3.11)", "clock_nanosleep (libc.so.6)"), waits.OUTSIDE),
        (("sock_recv (python3.11)", "__libc_recv (libc.so.6)"), waits.OUTSIDE),
    ],
)
def test_what_a_thread_waits_for_is_told_by_its_native_frames(native: tuple[str, ...], state: str) -> None:
    assert waits.state((MATCH, *native)) == state


def test_a_python_function_named_like_a_wait_runs() -> None:
    assert waits.state((*GIL_WAIT, "read (program.py:3)")) == waits.RUNNING


def test_a_rust_function_has_the_name_that_it_was_given() -> None:
    mangled = "_$LT$pyo3..state..SuspendAttach$u20$as$u20$core..ops..Drop$GT$::drop::hc090cc7c84609597"
    assert folded.plain_name(mangled) == "<pyo3::state::SuspendAttach as core::ops::Drop>::drop"
    assert folded.plain_name("genexpr..h") == "genexpr..h"


def test_the_roles_are_functions_of_the_load() -> None:
    for name in load.ROLES:
        assert callable(getattr(load, name))


def test_the_newest_latencies_are_kept() -> None:
    counts = load.Counts.of(2, 1)
    for number in range(load.KEPT + 3):
        counts.latencies[0][number % load.KEPT] = number
    counts.calls[0] = load.KEPT + 3
    counts.latencies[1][:2] = load.array("q", [7, 5])
    counts.calls[1] = 2
    assert counts.since([load.KEPT, 0]) == [5, 7, load.KEPT, load.KEPT + 1, load.KEPT + 2]
    assert len(counts.since([0, 2])) == load.KEPT


def test_the_load_runs_every_role_and_ends_when_told(own_implementation: str) -> None:
    command = [sys.executable, "-m", "profiles.load", own_implementation, "2", "4"]
    done = subprocess.run(command, input="begin\nend\n", capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    ready, first, second = map(json.loads, done.stdout.splitlines())
    assert ready["pid"] > 0
    assert ready["alone"] > 0
    assert set(second) == {*first, "p99"}
    for name in ("matches", "inserts", "progress"):
        assert 0 < first[name] <= second[name]
    for role in load.ROLES.values():
        assert 0 < first["processor"][role][0] <= second["processor"][role][0]


def test_a_load_that_cannot_start_is_one_sentence() -> None:
    with pytest.raises(record.CannotRecord, match="ended early"), record.load(sys.executable, "no such tree", 1, 1):
        pass


def test_one_recording_of_each_kind(can_sample: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--implementations", "reference", "--matchers", "2", "--seconds", "1", "--out", str(tmp_path)]
    assert main(["record", *options]) == 0
    assert "What the sampling cost" in capsys.readouterr().out
    summary = json.loads((tmp_path / "summary.json").read_text())
    (run,) = summary["runs"]
    assert list(run["recordings"]) == list(sampler.KINDS)
    for kind, one in run["recordings"].items():
        assert one["name"] == f"reference-{summary['commit']}-2-{kind}"
        files = {path.name.removeprefix(one["name"]) for path in tmp_path.glob(f"{one['name']}.*")}
        assert files == {".folded", ".json", ".speedscope.json", ".svg"}
        assert set(sampler.KINDS[kind]) <= set(one["flags"])
        assert one["window"]["matches"] > 0
    held = run["recordings"]["gil"]["shares"]
    assert 0.5 < sum(held.values()) <= 1.1  # pure Python: somebody nearly always holds it
    processor = run["control"]["processor"]["matchers"]
    assert sum(processor.values()) == pytest.approx(1, abs=0.05)
    for states in run["recordings"]["idle"]["states"].values():
        assert sum(states.values()) == pytest.approx(1)
    assert run["recordings"]["idle"]["states"]["matchers"][waits.GIL] > 0.2


def test_native_frames_name_the_compiled_tree(can_sample: None, tmp_path: Path) -> None:
    with record.load(sys.executable, "cython", 1, 64) as running:
        found = sampler.sample(running.pid, "cpu", 50, 1)
    frames = {frame for stack in found.stacks for frame in stack}
    assert any("cython_impl" in frame for frame in frames), sorted(frames)


def test_a_process_that_is_gone_is_one_sentence(sleeper: subprocess.Popen[str]) -> None:
    sleeper.kill()
    sleeper.wait()
    with pytest.raises(sampler.CannotRecord, match=rf"py-spy cannot record process {sleeper.pid}: .*\w$"):
        sampler.sample(sleeper.pid, "gil", 50, 1)


def test_a_missing_sampler_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sampler.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(record.CannotRecord, match="py-spy is not installed"):
        sampler.find_py_spy()


def test_another_system_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler.sys, "platform", "darwin")
    with pytest.raises(record.CannotRecord, match="on Linux"):
        sampler.find_py_spy()


@pytest.mark.parametrize(
    "said", ["Permission Denied: Try running again with elevated permissions", "EPERM: Operation not permitted"]
)
def test_a_sampler_without_rights_says_what_to_do(tmp_path: Path, said: str) -> None:
    refuses = tmp_path / "py-spy"
    refuses.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    refuses.chmod(0o755)
    with pytest.raises(sampler.CannotRecord) as reason:
        sampler.sample(1, "gil", 10, 1, py_spy=str(refuses))
    assert str(reason.value) == f"py-spy may not look into process 1: {sampler.RIGHTS} ({said})"
    assert "--cap-add SYS_PTRACE" in str(reason.value)


def test_a_collection_that_is_asked_for_finds_what_the_requests_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other has emptied its generation just before."""
    young: list[int] = []
    collect = gc.collect

    def asked(generation: int = 2) -> int:
        young.append(gc.get_count()[0])
        return collect(generation)

    monkeypatch.setattr(pauses, "REQUESTS", 100)
    monkeypatch.setattr(gc, "collect", asked)
    pauses.measure("reference", 200)
    assert len(young) == 1 + 3 * pauses.FORCED
    assert min(young[1:]) > pauses.BETWEEN
    assert gc.isenabled()


def test_the_collectors_pauses_of_each_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own_implementation: str
) -> None:
    options = ["--implementations", own_implementation, "--nodes", "2000", "--out", str(tmp_path)]
    assert main(["gc", *options]) == 0
    (one,) = json.loads((tmp_path / pauses.FILE).read_text())
    assert one["nodes"] == 2000
    assert len(one["served"][0]) > 0
    assert all(pause > 0 for generation in (*one["served"], *one["forced"]) for pause in generation)
    assert [len(generation) for generation in one["forced"]] == [pauses.FORCED] * 3
    assert "2,000 nodes" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["candidates", "--pid", "-5"], "argument --pid: -5 is not one of 1 … 1000000000"),
        (["candidates", "--pid", "abc"], "argument --pid: 'abc' is not an integer"),
        (["candidates", "--after", "-1", "--", "python"], "argument --after: -1 is not 0 or more"),
        (["candidates", "--after", "nan", "--", "python"], "argument --after: nan is not 0 or more"),
        (["candidates", "--after", "soon", "--", "python"], "argument --after: 'soon' is not a number"),
        (["candidates", "--rate", "100000", "--", "python"], "argument --rate: 100000 is not one of 1 … 1000"),
        (["record", "--seconds", "0"], "argument --seconds: 0 is not one of 1 …"),
        (["record", "--python", "/nowhere/python"], "argument --python: /nowhere/python is no program"),
        (["gc", "--nodes", "-5"], "argument --nodes: -5 is not one of 1 …"),
    ],
)
def test_an_argument_that_cannot_be_used_is_one_sentence(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("")
    stacks = [tmp_path / f"{name}.folded" for name in ("one", "two")]
    for path in stacks:
        path.write_text("main (a.py:1) 10\n")
    for options in (
        ["record", "--out", str(file)],
        ["gc", "--out", str(file)],
        ["compare", *map(str, stacks), "--out", str(file / "page.html")],
    ):
        assert main(options) == 1
        assert capsys.readouterr().err == f"profiles: the folder {file} cannot be made: File exists\n"
    assert main(["compare", *map(str, stacks), "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"profiles: {tmp_path} cannot be written: it is a folder\n"
