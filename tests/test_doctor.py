"""``triradix doctor``: in order where it is, and each way of being off with its reason, its fix and exit code 1.

A fault is planted by a ``sitecustomize.py`` on PYTHONPATH, which the process of each implementation runs first.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oracle
import pytest
from processes import ended

import triradix
from triradix.doctor import examination, self_test
from triradix.doctor.latency import MOST_CALLS
from triradix.implementations import MODULES

PAGE = (Path(__file__).parent.parent / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
DOCTOR = [sys.executable, "-m", "triradix", "doctor"]
Doctor = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    """Run it with a planted script; only the processes of the implementations see that."""

    def run(*arguments: str, planted: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        plant(tmp_path, planted)
        environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", **environment}
        command = [*DOCTOR, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)

    return run


def plant(folder: Path, script: str) -> None:
    worker = "any('triradix.doctor.worker' in argument for argument in sys.orig_argv)"
    (folder / "sitecustomize.py").write_text(f"import sys\nif {worker}:\n{_indented(script or 'pass')}")


def _indented(script: str) -> str:
    return "".join(f"    {line}\n" for line in script.strip().splitlines())


def broken(attribute: str, body: str, name: str = "reference") -> str:
    """A script after which caches of ``name`` have another method, with ``old`` to call the true one."""
    return f"""
import triradix.{name} as tree
class Broken(tree.RadixCache):
    def {attribute}(self, *args, **named):
        old = super().{attribute}
        {body}
tree.RadixCache = Broken
"""


def test_all_is_in_order(doctor: Doctor, own_implementation: str) -> None:
    done = doctor("--implementations", own_implementation, "--seconds", "0.1")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "all is in order" in done.stdout
    assert f"{own_implementation}: in order" in done.stdout
    for line in ("from", "built     release", "processor", "self-test passed", "fork      passed", "expected at most"):
        assert line in done.stdout


def test_for_programs(doctor: Doctor, own_implementation: str) -> None:
    done = doctor("--implementations", own_implementation, "--seconds", "0.1", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"]) == (0, True)
    found = told["implementations"][own_implementation]
    assert found["import"]["built"]["version"] == triradix.__version__ == told["place"]["triradix"]
    assert found["self-test"]["seconds"] < 1
    assert 0 < found["latency"]["p50"] <= found["latency"]["p99"]
    assert found["latency_expected_ns"] == MOST_CALLS[own_implementation] * found["latency"]["empty_call"]
    assert found["off"] == []


def test_without_a_figure(doctor: Doctor) -> None:
    done = doctor("--implementations", "reference", "--seconds", "0")
    assert done.returncode == 0
    assert "latency" not in done.stdout


def test_the_page_shows_what_is_printed(doctor: Doctor) -> None:
    """The numbers are of one machine; what is told of an implementation, and in which order, is the same on each."""
    ((command, printed),) = re.findall(r"```text\n\$ triradix doctor (.*)\n((?:.*\n)*?)```", PAGE)
    done = doctor(*command.split(), "--seconds", "0.1")

    def told(text: str) -> list[str]:
        return re.findall(r"^  (\S+)", text, re.MULTILINE) + text.splitlines()[-1:]

    assert told(done.stdout) == told(printed)


def test_the_probe_of_the_page(doctor: Doctor) -> None:
    """The command that Kubernetes is to run."""
    (command,) = re.findall(r"^    command: \[triradix, doctor, (.*)\]$", PAGE, re.MULTILINE)
    done = doctor(*command.replace('"', "").split(", "))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


FAULTS = {
    "not installed": (
        "sys.modules['_triradix_rust'] = None\nsys.modules['triradix.cython_impl.cache'] = None\n"
        "sys.modules['triradix.reference.cache'] = None",
        "cannot be imported",
    ),
    "another version": (
        "from importlib import import_module\nfrom triradix.implementations import MODULES\n"
        "package = import_module(MODULES[NAME])\ninfo = package.build_info()\n"
        "package.build_info = lambda: {**info, 'version': '0.0.1'}",
        "they must be the same",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_part_that_is_missing_or_old(doctor: Doctor, own_implementation: str, fault: str) -> None:
    planted, reason = FAULTS[fault]
    planted = planted.replace("NAME", repr(own_implementation))
    done = doctor("--implementations", own_implementation, "--seconds", "0", planted=planted)
    assert done.returncode == 1
    assert f"{own_implementation}: off" in done.stdout
    assert reason in done.stdout
    assert f"pip install --force-reinstall 'triradix{'[rust]' if own_implementation == 'rust' else ''}==" in done.stdout
    assert f"off: {own_implementation}\n" in done.stdout


def test_another_version_of_triradix(own_implementation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triradix, "__version__", "9.9.9")
    (trouble,) = examination.examine(own_implementation, 0).troubles
    assert "that of triradix 9.9.9; they must be the same" in trouble.reason
    extra = "[rust]" if own_implementation == "rust" else ""
    assert trouble.fix.startswith(f"pip install --force-reinstall 'triradix{extra}==9.9.9'")


UNTOLD = {
    "no build_info": ("del package.build_info", "does not say how it was built: AttributeError: "),
    "one that raises": ("package.build_info = lambda: 1 / 0", "does not say how it was built: ZeroDivisionError: "),
    "less than all": (
        "info = package.build_info()\ndel info['abi'], info['profile']\npackage.build_info = lambda: info",
        "does not say how it was built: its build_info() lacks profile, abi",
    ),
    "no text": ("info = package.build_info()\ninfo['cpu'] = {1}\npackage.build_info = lambda: info", ""),
}


@pytest.mark.parametrize("fault", UNTOLD)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_build_that_does_not_tell_of_itself(doctor: Doctor, own_implementation: str, fault: str, form: str) -> None:
    planted, reason = UNTOLD[fault]
    planted = f"import {MODULES[own_implementation]} as package\n{planted}"
    arguments = ["--implementations", own_implementation, "--seconds", "0", *(["--json"] if form == "json" else [])]
    done = doctor(*arguments, planted=planted)
    assert (done.returncode, done.stderr) == (1 if reason else 0, "")
    assert reason in done.stdout


def test_a_log_that_is_not(doctor: Doctor, own_implementation: str) -> None:
    done = doctor("--implementations", own_implementation, "--seconds", "0", TRIRADIX_LOG="verbose")
    assert done.returncode == 1
    assert "'verbose' is no level" in done.stdout
    assert "unset TRIRADIX_LOG, or set it to a level\n" in done.stdout
    done = doctor("--implementations", own_implementation, "--seconds", "0", TRIRADIX_LOG_TO="syslog")
    assert done.returncode == 1
    assert "TRIRADIX_LOG_TO is 'syslog'" in done.stdout
    assert "  fix       unset TRIRADIX_LOG_TO, or set it to stderr or logging\n" in done.stdout


def test_a_fault_of_others_that_names_the_log(doctor: Doctor) -> None:
    planted = "import importlib\ndef fail(name): raise ValueError('TRIRADIX_LOG')\nimportlib.import_module = fail"
    done = doctor("--implementations", "reference", "--seconds", "0", planted=planted)
    assert "pip install --force-reinstall" in done.stdout


def test_the_log_level_is_shown(doctor: Doctor, own_implementation: str) -> None:
    done = doctor("--implementations", own_implementation, "--seconds", "0", TRIRADIX_LOG=f"{own_implementation}=debug")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  log       debug\n" in done.stdout


def test_a_debug_build(doctor: Doctor) -> None:
    done = doctor("--implementations", "reference", "--seconds", "0", planted="sys.gettotalrefcount = None")
    assert done.returncode == 1
    assert "it is a debug build" in done.stdout


WRONG = {
    "a wrong answer": ("match_prefix", "return old([])", "self-test: a match of one page is (0, [])"),
    "an exception": ("evict", "raise OSError('lost')", "self-test: finds_and_frees raised OSError: lost"),
    "a lock that holds nothing": ("inc_lock_ref", "return 0", "self-test: the units that a lock protects is 0"),
    "a wrong order": (
        "evict",
        "freed = old(*args)\n        return old(0) if freed.num_tokens == 7 else freed",
        "self-test: a walk of seeded calls was answered otherwise",
    ),
    "a crash": (
        "insert",
        "__import__('os').kill(__import__('os').getpid(), 11)",
        "the self-test was killed by SIGSEGV",
    ),
    "a foreign instruction": (
        "insert",
        "__import__('os').kill(__import__('os').getpid(), 4)",
        "this processor lacks an instruction",
    ),
    "no memory": ("insert", "__import__('os').kill(__import__('os').getpid(), 9)", "give the container more memory"),
    "an exit": ("insert", "__import__('os')._exit(3)", "the self-test ended with exit code 3"),
    "an exit as if all were done": (
        "insert",
        "__import__('os')._exit(0)",
        "the self-test ended early, with exit code 0",
    ),
    "a polite one": ("match_prefix", "sys.exit(0)", "the self-test ended early, with exit code 0: nothing was said"),
    "a signal without a name": (
        "insert",
        "__import__('os').kill(__import__('os').getpid(), 35)",
        "the self-test was killed by signal 35",
    ),
    "half of a line": (
        "insert",
        "__import__('os').write(3, b'{\"part\": \"self-test\", \"sec'); __import__('os')._exit(0)",
        "the self-test ended early",
    ),
    "bytes that are no text": (
        "insert",
        "__import__('os').write(2, b'\\xff\\xfe lost\\n'); __import__('os')._exit(4)",
        "the self-test ended with exit code 4: \ufffd\ufffd lost",
    ),
    "more words than a pipe holds": (
        "insert",
        "print('x' * 3_000_000); print('at last'); sys.stdout.flush(); __import__('os')._exit(4)",
        "the self-test ended with exit code 4: at last",
    ),
    "an exception of several lines": (
        "insert",
        "raise ValueError('one\\ntwo\\x1b[31m\\n  three')",
        "  reason    self-test: finds_and_frees raised ValueError: one two [31m three\n",
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_an_implementation_that_does_wrong(doctor: Doctor, fault: str) -> None:
    method, body, reason = WRONG[fault]
    done = doctor("--implementations", "reference", "--seconds", "0", planted=broken(method, body))
    assert done.returncode == 1, done.stderr
    assert reason in done.stdout
    assert "fix" in done.stdout


IN_A_CHILD = "import os\nparent = os.getpid()\n"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return old(*args) if os.getpid() == parent else None", "the child of a fork could not use its copy"),
        ("os.getpid() == parent or os.kill(os.getpid(), 11); return old(*args)", "was killed by SIGSEGV"),
        ("os.getpid() == parent or __import__('time').sleep(60); return old(*args)", "the child of a fork hung for"),
    ],
)
def test_a_cache_that_does_not_outlive_a_fork(doctor: Doctor, body: str, reason: str) -> None:
    quick = "import triradix.doctor.forks as forks\nforks.PATIENCE_S = 0.3\n"
    planted = IN_A_CHILD + quick + broken("match_prefix", body)
    done = doctor("--implementations", "reference", "--seconds", "0", planted=planted)
    assert done.returncode == 1, done.stderr
    assert f"fork: {reason}" in done.stdout or (reason in done.stdout and "fork: " in done.stdout)


def test_a_slow_build(doctor: Doctor) -> None:
    planted = broken("match_prefix", "__import__('time').sleep(0.001)\n        return old(*args)")
    done = doctor("--implementations", "reference", "--seconds", "0.1", planted=planted)
    assert done.returncode == 1
    assert "a match of 128 tokens takes" in done.stdout
    assert "less busy" in done.stdout


def test_an_implementation_that_hangs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(broken("insert", "__import__('time').sleep(60)"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (trouble,) = examination.examine("reference", 0, patience=1.5).troubles
    assert "the self-test hung for 1.5 s" in trouble.reason


def test_one_that_is_off_among_others(doctor: Doctor) -> None:
    planted = "if 'reference' in sys.orig_argv:" + broken("evict", "return None").replace("\n", "\n    ")
    done = doctor("--seconds", "0", planted=planted)
    assert done.returncode == 1
    assert "reference: off" in done.stdout
    assert "cython: in order" in done.stdout
    assert "rust: in order" in done.stdout
    assert done.stdout.endswith("off: reference\n")


@pytest.mark.parametrize(
    ("by", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9), (signal.SIGQUIT, -3)],
)
@pytest.mark.parametrize("during", ["self-test", "fork"])
def test_whoever_ends_the_doctor_ends_all(tmp_path: Path, by: signal.Signals, code: int, during: str) -> None:
    """The worker, the child of its fork, and what the tree has started, as far as this process lives to end that."""
    asleep = f"""
        import os, subprocess, time
        if {during == "fork"} and os.getpid() == os.getsid(0):
            return old(*args)
        pids = [os.getsid(0), os.getpid()]
        if {by not in (signal.SIGKILL, signal.SIGQUIT)}:
            pids.append(subprocess.Popen(["sleep", "1000"]).pid)
        with open({str(tmp_path / "pids")!r} + ".new", "w") as file:
            file.write(" ".join(map(str, pids)))
        os.rename(file.name, {str(tmp_path / "pids")!r})
        time.sleep(1000)"""
    patient = "import triradix.doctor.forks\ntriradix.doctor.forks.PATIENCE_S = 1000\n"
    plant(tmp_path, patient + broken("match_prefix", asleep))
    process = subprocess.Popen(
        [*DOCTOR, "--implementations", "reference", "--seconds", "0"],
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while not (tmp_path / "pids").exists():
        time.sleep(0.01)
    process.send_signal(by)
    assert process.wait() == code
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    for pid in (tmp_path / "pids").read_text().split():
        ended(int(pid))


def test_what_an_implementation_leaves_running_holds_nobody_up(tmp_path: Path, doctor: Doctor) -> None:
    """It has the pipes, and is in the worker's group or not."""
    planted = f"""
import os, subprocess, triradix.reference
if "reference" in sys.orig_argv:
    left = [subprocess.Popen(["sleep", "1000"], start_new_session=new) for new in (True, False)]
    open({str(tmp_path / "pids")!r}, "w").write(" ".join(str(one.pid) for one in left))
"""
    done = doctor("--implementations", "reference", "--seconds", "0", planted=planted)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    elsewhere, own = map(int, (tmp_path / "pids").read_text().split())
    ended(own)
    os.kill(elsewhere, signal.SIGKILL)


def test_what_is_printed_before(doctor: Doctor) -> None:
    planted = "import os\nos.write(1, b'{\"part\": []}\\n[]\\n{}\\n\\xff')\nprint('hello')\nprint('you', end='')"
    done = doctor("--implementations", "reference", "--seconds", "0", planted=planted)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_the_current_folder_is_not_looked_into(doctor: Doctor, tmp_path: Path) -> None:
    """The doctor is a command, and its process finds what the command finds."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("random", "json", "numpy", "triradix", "_triradix_rust", "ctypes"):
        (elsewhere / f"{name}.py").write_text("raise SystemExit('not this one')")
    command = "import sys; sys.path.remove(''); from triradix.cli import main; sys.exit(main())"
    for implementation in triradix.IMPLEMENTATIONS:
        arguments = ["doctor", "--implementations", implementation, "--seconds", "0"]
        done = subprocess.run(
            [sys.executable, "-c", command, *arguments], capture_output=True, text=True, cwd=elsewhere
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_variables_that_the_doctor_does_not_look_at(doctor: Doctor, tmp_path: Path) -> None:
    plant(tmp_path, "sys.exit(1)")
    command = [DOCTOR[0], "-E", *DOCTOR[1:], "--implementations", "reference", "--seconds", "0"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode == 0


def test_an_encoding_without_our_letters(doctor: Doctor) -> None:
    done = doctor("--implementations", "reference", "--seconds", "0.1", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert r"tokens" in done.stdout and r" \xb5s" in done.stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_is_printed_cannot_be_written(doctor: Doctor, unbuffered: str) -> None:
    def printing(redirection: str, *arguments: str) -> tuple[int, str]:
        script = f'"$@" {redirection}; exit "${{PIPESTATUS[0]}}"'
        command = ["bash", "-c", script, "-", *DOCTOR, *arguments, "--implementations", "reference", "--seconds", "0"]
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
        return done.returncode, done.stderr

    for arguments in ([], ["--json"]):
        assert printing("| true", *arguments) == (141, "")
        said = "triradix: what is printed cannot be written: No space left on device\n"
        assert printing(">/dev/full", *arguments) == (1, said)


def test_whoever_ignores_that_children_end() -> None:
    """What an entry point ignores its children ignore too, and then nobody is told how a process ended."""
    command = [
        "bash",
        "-c",
        'trap "" CHLD; exec "$@"',
        "-",
        *DOCTOR,
        "--implementations",
        "reference",
        "--seconds",
        "0",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_without_any_stream() -> None:
    command = 'exec "$@" <&- >&- 2>&-'
    for name, code in (("reference", 0), ("cobol", 2)):
        arguments = ["bash", "-c", command, "-", *DOCTOR, "--implementations", name, "--seconds", "0"]
        assert subprocess.run(arguments).returncode == code


def test_too_few_files(own_implementation: str) -> None:
    """A process cannot be started, or comes not far: a finding."""
    for most in (7, 8, 9, 10, 11):
        command = f'ulimit -n {most}; exec "$@"'
        arguments = ["bash", "-c", command, "-", *DOCTOR, "--implementations", own_implementation, "--seconds", "0"]
        done = subprocess.run(arguments, capture_output=True, text=True)
        assert "Traceback" not in done.stderr + done.stdout
        assert done.returncode == (1 if "\noff: " in done.stdout else 0), most
        if most == 7:
            assert "its process cannot be started: Too many open files" in done.stdout
            assert "ulimit" in done.stdout


def test_the_probe_of_the_page_waits_longer_than_the_doctor() -> None:
    """Else nobody would hear what hung."""
    (command,) = re.findall(r"^    command: \[triradix, doctor, (.*)\]$", PAGE, re.MULTILINE)
    (waits,) = re.findall(r"^  timeoutSeconds: (\d+)$", PAGE, re.MULTILINE)
    words = command.replace('"', "").split(", ")
    seconds = float(words[words.index("--seconds") + 1])
    implementations = words[words.index("--implementations") + 1].split(",")
    assert int(waits) >= len(implementations) * (examination.PATIENCE_S + seconds) + 5


@pytest.mark.parametrize("arguments", [["--implementations", "cobol"], ["--seconds", "-1"], ["--seconds", "long"]])
def test_what_cannot_be_used(doctor: Doctor, arguments: list[str]) -> None:
    done = doctor(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_walk_has_the_answers_of_the_model(implementation: Any) -> None:
    """The answers that the self-test holds everyone against are those of the suite's own model, and of every tree."""
    model: Any = oracle.RadixCache
    assert self_test.walk(model) == self_test.ANSWERS
    assert self_test.walk(implementation.create) == self_test.ANSWERS
