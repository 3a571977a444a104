"""The ``make bench…`` targets: which commits they measure, one run at a time, and that nothing runs on afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # asv_benchmarks is no installed package

from asv_benchmarks import attached, bench, history, machines  # noqa: E402


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three commits, and what asv would have been called with beside them (``asv.txt``)."""
    root = tmp_path / "repository"
    (root / "src").mkdir(parents=True)
    git = ["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for number in range(3):
        (root / "src" / "a").write_text(str(number))
        subprocess.run([*git, "add", "src"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--no-verify", "-m", str(number)], check=True)
    monkeypatch.setattr(bench, "ROOT", root)
    monkeypatch.setattr(machines, "FILE", root / ".asv" / "machines.json")

    def asv(arguments: list[str], stdin: str, lock: int) -> int:
        (tmp_path / "asv.txt").write_text("\n".join([*arguments, "", stdin]))
        return 0

    monkeypatch.setattr(bench, "asv", asv)
    return root


def test_commits_and_ranges_are_measured_once_each(repository: Path, tmp_path: Path) -> None:
    assert bench.commits(["HEAD~1", "HEAD~2..HEAD"]) == [
        *bench.commits(["HEAD~1"]),
        *bench.commits(["HEAD"]),
    ]
    assert bench.main(["history", "HEAD~2..HEAD", "--machine", "m"]) == 0
    said = (tmp_path / "asv.txt").read_text()
    assert said.startswith("run\nHASHFILE:-\n--bench\n")
    assert "--interleave-rounds" in said and said.endswith("\n".join(bench.commits(["HEAD~2..HEAD"])))


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("(", "--bench '(' is no regular expression: missing ), unterminated subpattern at position 0"),
        ("HotMatch.*reference, 1", "--bench 'HotMatch.*reference, 1' selects no benchmark; a name reads "),
    ],
)
def test_what_selects_nothing_is_told_before_anything_is_built(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], regex: str, reason: str
) -> None:
    assert bench.main(["compare", "HEAD~1", "--bench", "HotMatch.*'reference', 1,", "--bench", regex]) == 2
    assert capsys.readouterr().err.startswith(f"bench: {reason}")
    assert not (tmp_path / "asv.txt").exists()


def test_compare_takes_turns_and_the_measured_factor(repository: Path, tmp_path: Path) -> None:
    assert bench.main(["compare", "HEAD~1", "--bench", "HotMatch"]) == 0
    said = (tmp_path / "asv.txt").read_text().splitlines()
    assert said[:3] == ["continuous", "--factor", str(bench.continuous_factor())]
    assert said[3:5] == bench.commits(["HEAD~1", "HEAD"])
    assert said[5:7] == ["--bench", "HotMatch"]
    assert "--interleave-rounds" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["short", "no-such"], "bench: there is no commit or range 'no-such' in this repository\n"),
        (["full", "no-such..HEAD"], "bench: there is no commit or range 'no-such..HEAD' in this repository\n"),
        (["history", "HEAD..HEAD~1"], "bench: nothing to measure: HEAD..HEAD~1 holds no commit\n"),
        (["compare", "HEAD", "HEAD"], "bench: nothing to compare: HEAD and HEAD are the same commit\n"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_sentence(
    arguments: list[str], sentence: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(arguments) == 2
    assert capsys.readouterr().err == sentence


def test_without_asv_one_sentence_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "find_spec", lambda name: None)
    assert bench.main(["short"]) == 2
    assert capsys.readouterr().err == "bench: asv is not installed here: `make setup` installs it into .venv\n"


def test_edits_that_are_not_committed_are_mentioned(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["short"]) == 0
    assert capsys.readouterr().err == ""
    (repository / "src" / "new").touch()
    assert bench.main(["short", "HEAD~1"]) == 0
    assert capsys.readouterr().err == ""
    assert bench.main(["short"]) == 0
    assert "not committed" in capsys.readouterr().err


def test_the_index_of_git_is_let_be(repository: Path) -> None:
    """Else a Ctrl-C meanwhile would leave git's lock on it."""
    index = repository / ".git" / "index"
    os.utime(repository / "src" / "a", (1, 1))
    before = index.read_bytes()
    assert bench.main(["short"]) == 0
    assert index.read_bytes() == before


# What is made stands in .asv, whatever it is called.

NO_NAMES = ("", ".", "..", ".hidden", "../../escaped", "/absolute", "a/b", "a\\b", "a\nb", "version", "benchmarks.json")


@pytest.mark.parametrize("name", [*NO_NAMES, "n" * 201])
def test_a_name_that_no_folder_can_have_is_refused(
    name: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(start: str) -> bool:
        said = capsys.readouterr().err
        return said.startswith(start) and "cannot be the name of a machine" in said and said.count("\n") == 1

    assert bench.main(["short", f"--machine={name}"]) == 2
    assert refused("bench: --machine: ")
    assert history.main(["keep", name]) == 1
    assert refused("history: ")
    monkeypatch.setattr("asv.machine.Machine.hardcoded_machine_name", name or "/")  # the host is called so
    assert bench.main(["short"]) == 2
    assert refused("bench: ")
    assert not (tmp_path / "asv.txt").exists() and not (repository / ".asv").exists()


@pytest.mark.parametrize("name", ["epyc-zen4-2core", "host.example.org", "Jürgens Mac (2)", "-x"])
def test_a_machine_is_described_in_a_file_of_this_clone(
    name: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from asv.machine import Machine, MachineCollection  # type: ignore[import-untyped]

    monkeypatch.setenv("HOME", "/nowhere")
    (repository / ".asv").mkdir()
    machines.FILE.write_text("what no run can use")
    assert bench.main(["short", f"--machine={name}"]) == 0
    assert f"--machine={name}" in (tmp_path / "asv.txt").read_text().splitlines()
    monkeypatch.setattr(MachineCollection, "get_machine_file_path", MachineCollection.get_machine_file_path)
    machines.setup()
    assert Machine.load(machine_name=name).machine == name
    assert not Path("/nowhere").exists()


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (".asv", "{} is no folder: nothing can be measured before it is out of the way"),
        (".asv/env", "{} is no folder: nothing can be measured before it is out of the way"),
        (".asv/results", "{} is no folder: nothing can be measured before it is out of the way"),
        (".asv/bench.lock/", "{} cannot be written: Is a directory"),
        (".asv/machines.json/", "{} cannot be written: Is a directory"),
    ],
)
def test_what_stands_in_the_way_is_named(
    file: str, sentence: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = repository / file
    path.parent.mkdir(exist_ok=True)
    if file.endswith("/"):
        path.mkdir()
    else:
        path.touch()
    assert bench.main(["short"]) == 2
    assert capsys.readouterr().err == f"bench: {sentence.format(path)}\n"


def test_without_git_one_sentence_says_what_to_do(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert bench.main(["short"]) == 2
    assert capsys.readouterr().err == "bench: git is not on PATH; install it (Debian, Ubuntu: the package git)\n"


def test_what_the_history_cannot_use_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "machine.json").write_text("{")
    monkeypatch.setattr(history.keep, "__defaults__", (tmp_path, tmp_path / "kept"))
    monkeypatch.setattr(history.restore, "__defaults__", (tmp_path / "m" / "machine.json", history.KEPT))
    assert history.main(["keep", "m"]) == 1
    assert capsys.readouterr().err.startswith(f"history: {tmp_path}/m/machine.json is no JSON: ")
    assert history.main(["restore"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"history: {tmp_path}/m/machine.json/") and said.endswith(": Not a directory\n")
    assert history.main(["keep", "other"]) == 1
    assert "there are no results of a machine 'other'" in capsys.readouterr().err


# One run at a time, and nothing left of it.


def test_a_second_run_is_refused_while_the_first_measures(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = repository / ".asv" / "bench.lock"
    with bench.alone(lock):
        assert bench.main(["short"]) == 2
        assert capsys.readouterr().err == (
            f"bench: another run is measuring in this clone (process {os.getpid()}), and each would spoil the other's "
            "figures: wait for it, or end it\n"
        )
    assert bench.main(["short"]) == 0


def test_a_signal_ends_a_run_with_a_sentence(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def asv(arguments: list[str], stdin: str, lock: int) -> int:
        raise attached.Stopped(signal.SIGTERM)

    monkeypatch.setattr(bench, "asv", asv)
    assert bench.main(["short"]) == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "bench: stopped by SIGTERM\n"


COMMAND = """
import subprocess, sys, time
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
worker = subprocess.Popen(sleep, start_new_session=True)
leave = f"import subprocess; print(subprocess.Popen({sleep}, start_new_session=True, stdout=2).pid)"
orphan = subprocess.run([sys.executable, "-c", leave], stdout=subprocess.PIPE, text=True).stdout.strip()
print(sys.stdin.read().strip() or "-", worker.pid, orphan, flush=True)
time.sleep(float(sys.argv[1]))
sys.exit(7)
"""
"""Starts what asv starts: a worker in a process group of its own, and one whose parent is gone."""

DRIVER = """
import os, signal, sys
from pathlib import Path
from asv_benchmarks import attached, bench
# Whoever runs the tests in the background may have SIGINT ignored, and with it all that they start.
signal.signal(signal.SIGINT, signal.SIG_DFL)
with bench.alone(Path(sys.argv[1])) as lock:
    attached.run([sys.executable, "-c", sys.argv[2], "600"], cwd=Path("/"), env=os.environ, keep_open=[lock])
"""


def gone(*processes: str) -> bool:
    return not any(psutil.pid_exists(int(each)) for each in processes)


def soon(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


def test_a_command_gets_its_input_and_gives_its_exit_code(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-c", COMMAND, "0"]
    assert attached.run(command, cwd=tmp_path, env=os.environ, stdin="a hash") == 7
    *said, worker, orphan = capfd.readouterr().out.split()
    assert said == ["a", "hash"]
    # What it left behind is gone too; whose parent has gone is only found on Linux.
    assert gone(worker) and (gone(orphan) or sys.platform != "linux")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda each: each.name)
def test_nothing_runs_on_when_the_run_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    command = [sys.executable, "-c", DRIVER, str(lock), COMMAND]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        _, worker, orphan = driver.stdout.readline().split()
        with pytest.raises(bench.Problem, match=f"process {driver.pid}"), bench.alone(lock):
            pass
        driver.send_signal(number)
        try:
            driver.wait(20)
        except subprocess.TimeoutExpired:
            driver.kill()
            raise
        if number != signal.SIGKILL:
            assert gone(worker)
    assert soon(lambda: gone(worker) and (gone(orphan) or sys.platform != "linux"))
    assert soon(lambda: free(lock)), "the lock goes with the last of it"


def free(lock: Path) -> bool:
    try:
        with bench.alone(lock):
            return True
    except bench.Problem:
        return False


PRINTER = """
import os, sys
from pathlib import Path
from asv_benchmarks import attached, console
console.open_missing_streams()
command = [sys.executable, "-c", "for number in range(10**9): print(number, flush=True)"]
sys.exit(console.ending("name", lambda: attached.run(command, cwd=Path("/"), env=os.environ)))
"""


@pytest.mark.parametrize(
    ("redirection", "code", "said"),
    [
        ("| head -c 100", 141, ""),
        (">/dev/full", 1, "name: what is printed cannot be written: No space left on device\n"),
    ],
)
def test_a_command_ends_when_what_it_prints_cannot_be_written(redirection: str, code: int, said: str) -> None:
    # An end of its own, since Python would complain of Ctrl-C.
    printer = PRINTER.replace("for number", "import sys; sys.excepthook = lambda *_: None\\nfor number")
    script = f'"$@" {redirection}; exit "${{PIPESTATUS[0]}}"'
    command = ["bash", "-c", script, "-", sys.executable, "-c", printer]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (code, said)


def test_a_command_without_stdout_runs_to_its_end() -> None:
    printer = PRINTER.replace("10**9", "10")
    command = ["sh", "-c", '"$@" >&-', "-", sys.executable, "-c", printer]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")
