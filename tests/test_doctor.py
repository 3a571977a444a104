"""``triradix doctor``: in order where it is, and each way of being off with its reason, its fix and exit code 1.

A fault is planted by a ``sitecustomize.py`` on PYTHONPATH, which the process of each implementation runs first.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oracle
import pytest

import triradix
from triradix.doctor import examination, self_test
from triradix.doctor.latency import MOST_CALLS

PAGE = (Path(__file__).parent.parent / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
Doctor = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    """Run it with a planted script; only the processes of the implementations see that."""

    def run(*arguments: str, planted: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        script = f"import sys\nif 'triradix.doctor.worker' in sys.orig_argv:\n{_indented(planted or 'pass')}"
        (tmp_path / "sitecustomize.py").write_text(script)
        command = [sys.executable, "-m", "triradix", "doctor", *arguments]
        environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", **environment}
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)

    return run


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


def test_a_log_that_is_not(doctor: Doctor, own_implementation: str) -> None:
    done = doctor("--implementations", own_implementation, "--seconds", "0", TRIRADIX_LOG="verbose")
    assert done.returncode == 1
    assert "'verbose' is no level" in done.stdout
    assert "unset TRIRADIX_LOG" in done.stdout


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
    planted = "if sys.orig_argv[-2] == 'reference':" + broken("evict", "return None").replace("\n", "\n    ")
    done = doctor("--seconds", "0", planted=planted)
    assert done.returncode == 1
    assert "reference: off" in done.stdout
    assert "cython: in order" in done.stdout
    assert "rust: in order" in done.stdout
    assert done.stdout.endswith("off: reference\n")


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
