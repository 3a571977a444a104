"""The command line, from its arguments to its files and exit codes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from implementations import Implementation
from processes import ended

import triradix
from triradix.cli import main


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def replay(*arguments: object) -> int:
    return main(["replay", *map(str, arguments)])


@pytest.fixture
def name(implementation: Implementation) -> str:
    """Processes of their own know an implementation by its name alone."""
    if implementation.name not in triradix.IMPLEMENTATIONS:
        pytest.skip("the command line runs the implementations of this package")
    return implementation.name


def write_trace(path: Path, requests: int = 30) -> Path:
    lines = [
        {"timestamp": i, "input_length": 600 + i, "output_length": 5, "hash_ids": [i % 3, i]} for i in range(requests)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_workload(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = replay("--workload", "rag", "--requests", 60, "--capacity", 32768, "--implementations", name)
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert "Hit rate" in shown.out
    assert f"{name}: 60 of 60 requests" in shown.err
    report = json.loads((tmp_path / "out/replay.json").read_text())
    assert list(report["implementations"]) == [name]
    assert report["outcome"]["evicted_tokens"] > 0
    assert report["implementations"][name]["peak_rss"] > 10_000_000
    assert report["implementations"][name]["operations"]["match"]["calls"] == 60
    assert "<html" in (tmp_path / "out/replay.html").read_text()


def test_a_trace_and_its_hit_rates(name: str, tmp_path: Path) -> None:
    path = write_trace(tmp_path / "small.jsonl")
    assert replay("--trace", path, "--capacity", "unbounded", "--implementations", name, "--json", "a/b.json") == 0
    report = json.loads((tmp_path / "a/b.json").read_text())
    assert report["settings"]["capacity"] is None
    assert report["outcome"]["hit_rate_blocks"] == pytest.approx(report["outcome"]["ideal"]["blocks"])
    assert report["outcome"]["hit_rate_tokens"] == pytest.approx(report["outcome"]["ideal"]["tokens"])
    assert report["outcome"]["ideal"]["blocks"] == pytest.approx(27 / 60)


def test_the_command_in_the_report_does_the_same_again(tmp_path: Path) -> None:
    arguments = ["--requests", 40, "--page-size", 16, "--policy", "slru", "--capacity", 20_000, "--concurrency", 3]
    arguments += ["--no-output", "--seed", 9, "--implementations", "reference"]
    assert replay(*arguments) == 0
    first = json.loads((tmp_path / "out/replay.json").read_text())
    command = shlex.split(first["command"])
    assert command[0] == "triradix"
    assert main(command[1:]) == 0
    second = json.loads((tmp_path / "out/replay.json").read_text())
    for part in ("outcome", "settings", "trace", "command"):
        assert first[part] == second[part]
    assert first["settings"]["output_tokens"] is False
    assert first["settings"]["capacity"] == 20_000


def test_requests_that_do_not_fit_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"token_ids": [1, 2, 3]}\n' + json.dumps({"token_ids": list(range(100))}) + "\n")
    assert replay("--trace", path, "--capacity", 50, "--implementations", "reference") == 0
    assert "1 requests did not fit the capacity" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--trace", "absent"], "absent cannot be read: No such file or directory"),
        (["--page-size", "64", "--capacity", "63"], "--capacity 63 does not hold one page of 64 tokens"),
        (["--requests", "5", "--json", "/dev/null/x.json"], "cannot be made"),
        (["--requests", "5", "--html", "."], "cannot be written: it is a folder"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(*arguments, "--implementations", "reference") == 2
    error = capsys.readouterr().err
    assert error.startswith("triradix replay: error: ")
    assert complaint in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--implementations", "python"], "unknown implementation 'python'; allowed: reference, cython, rust"),
        (["--implementations", "rust,rust"], "twice"),
        (["--page-size", "0"], "0 is not 1 or more"),
        (["--requests", "many"], "'many' is not an integer"),
        (["--capacity", "-1"], "out of range"),
        (["--policy", "random"], "invalid choice"),
        (["--workload", "chat", "--trace", "x"], "not allowed with"),
    ],
)
def test_bad_arguments(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        replay(*arguments)
    assert caught.value.code == 2
    assert complaint in capsys.readouterr().err


def test_a_bad_line_has_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"token_ids": [1]}\n{"token_ids": 2}\n')
    done = subprocess.run(
        [sys.executable, "-m", "triradix", "replay", "--trace", "bad.jsonl", "--implementations", "reference"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == "triradix replay: error: bad.jsonl, line 2: token_ids must be a list of integers, not 2\n"


def test_a_missing_implementation_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "triradix.rust_impl", None)
    assert replay("--requests", 5, "--implementations", "reference,rust") == 2
    error = capsys.readouterr().err
    assert "the rust implementation cannot be imported" in error
    assert not Path("out").exists()


def test_a_difference_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Two replays of one implementation, one of them told to forget a hit."""
    from triradix.replay import runner

    ran: list[Any] = []

    def run(job: Any, watch: Any) -> Any:
        from triradix.replay.worker import replay as measure

        measurement = measure(job)
        if ran:
            measurement.hit[4] -= 1
        ran.append(job)
        return measurement

    monkeypatch.setattr(runner, "_run", run)
    monkeypatch.setattr(runner, "check_implementations", lambda *_: None)
    monkeypatch.setattr(triradix, "create", lambda name, **config: REFERENCE(**config))
    assert replay("--workload", "chat", "--requests", 20, "--implementations", "reference,cython") == 1
    assert "the implementations differ, first at request 4 (counted from 0)" in capsys.readouterr().err
    assert not Path("out/replay.json").exists()


REFERENCE: Any = type(triradix.create("reference"))


def test_a_replay_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PYTHONMALLOC", "no such allocator")
    assert replay("--requests", 5, "--implementations", "reference") == 1
    assert "the replay of reference" in capsys.readouterr().err


DEATHS = {
    "an exception": ("raise OSError('the disk is full')", "ended with exit code 1: OSError: the disk is full"),
    "last words": ("os.write(2, b'first\\nall is lost\\n'); os._exit(3)", "ended with exit code 3: all is lost"),
    "a kill": ("os.kill(os.getpid(), 9)", "was killed by SIGKILL: it said nothing (not enough memory?)"),
    "a crash": ("os.kill(os.getpid(), 11)", "was killed by SIGSEGV: it said nothing"),
    "a signal without a name": ("os.kill(os.getpid(), 35)", "was killed by signal 35: it said nothing"),
    "an exit as if all were done": ("os._exit(0)", "ended with exit code 0: it said nothing"),
    "bytes that are no text": ("os.write(2, b'\\xff\\n'); os._exit(3)", "ended with exit code 3: \ufffd"),
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_replay_that_dies_shows_its_last_words(
    death: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body, said = DEATHS[death]
    (tmp_path / "sitecustomize.py").write_text(f"""
import os, sys
if any("triradix.replay.worker" in argument for argument in sys.orig_argv):
    import triradix.reference as tree
    class Dying(tree.RadixCache):
        def evict(self, count):
            {body}
    tree.RadixCache = Dying
""")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert replay("--requests", 5, "--implementations", "reference") == 1
    first, *more = capsys.readouterr().err.splitlines()
    assert first == f"triradix replay: the replay of reference {said}"
    assert all(line.startswith("  ") for line in more)
    assert not Path("out/replay.json").exists()


@pytest.mark.parametrize(
    "command", ["replay --requests 5 --implementations", "compare --quick --rows hot-16 --systems"]
)
@pytest.mark.parametrize("full", [False, True])
def test_a_report_does_not_go_with_the_reader_of_the_table(tmp_path: Path, command: str, full: bool) -> None:
    arguments = [*command.split(), "reference", "--json", str(tmp_path / "a.json"), "--html", str(tmp_path / "a.html")]
    if full:
        stdout = os.open("/dev/full", os.O_WRONLY)
    else:
        read, stdout = os.pipe()
        os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "triradix", *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True
    )
    os.close(stdout)
    assert done.returncode == (1 if full else 141), done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads((tmp_path / "a.json").read_text())
    assert (tmp_path / "a.html").exists()


def test_what_is_printed_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nprint('hello')\nos.write(1, b'\\xff')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert replay("--requests", 5, "--implementations", "reference") == 0


def test_the_current_folder_is_not_looked_into(tmp_path: Path) -> None:
    for module in ("random", "json", "numpy", "triradix"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('not this one')")
    command = "import sys; sys.path.remove(''); from triradix.cli import main; sys.exit(main())"
    arguments = ["replay", "--requests", "5", "--implementations", "reference"]
    done = subprocess.run([sys.executable, "-c", command, *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("by", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)])
def test_whoever_ends_a_replay_ends_its_process(tmp_path: Path, by: signal.Signals, code: int) -> None:
    pid = tmp_path / "pid"
    (tmp_path / "sitecustomize.py").write_text(f"""
import os, sys
if any("triradix.replay.worker" in argument for argument in sys.orig_argv):
    import time, triradix.reference as tree
    class Asleep(tree.RadixCache):
        def evict(self, count):
            with open({str(pid)!r} + ".new", "w") as file:
                file.write(str(os.getpid()))
            os.rename(file.name, {str(pid)!r})
            time.sleep(1000)
    tree.RadixCache = Asleep
""")
    process = subprocess.Popen(
        [sys.executable, "-m", "triradix", "replay", "--requests", "5", "--implementations", "reference"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    while not pid.exists():
        time.sleep(0.01)
    process.send_signal(by)
    _, complained = process.communicate()
    assert (process.returncode, "Traceback" in complained) == (code, False)
    ended(int(pid.read_text()))
    if by != signal.SIGKILL:
        assert not list(tmp_path.glob("triradix-replay-*"))


def test_what_the_trees_tell_is_shown(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIRADIX_LOG", f"{name}.eviction=debug")
    assert replay("--workload", "rag", "--requests", 60, "--capacity", 32768, "--implementations", name) == 0
    assert f"DEBUG triradix.{name}.eviction: evicted " in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "replay" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"triradix {triradix.__version__}\n"
    with pytest.raises(SystemExit):
        main(["replay", "--help"])
    assert "--capacity unbounded --concurrency 1 --no-output" in capsys.readouterr().out
