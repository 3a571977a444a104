"""The benchmarks of asv: each runs once here, on every implementation, so that none breaks unseen."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from implementations import Implementation

import triradix

FOLDER = Path(__file__).parent.parent / "asv_benchmarks"
sys.path.insert(0, str(FOLDER.parent))  # asv_benchmarks is no installed package

from asv_benchmarks import wheels  # noqa: E402
from asv_benchmarks.benchmarks import workload  # noqa: E402

MODULES = ("match", "insert", "evict")


def benchmarks() -> list[Any]:
    modules = [importlib.import_module(f"asv_benchmarks.benchmarks.{name}") for name in MODULES]
    return [
        cls
        for module in modules
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if cls.__module__ == module.__name__
    ]


def timed(cls: Any) -> list[str]:
    return [name for name in dir(cls) if name.startswith("time_")]


def test_every_module_is_known_here() -> None:
    found = {path.stem for path in (FOLDER / "benchmarks").glob("*.py")}
    assert found == {*MODULES, "workload", "__init__"}


def test_the_implementations_are_those_of_the_package() -> None:
    assert workload.IMPLEMENTATIONS == triradix.IMPLEMENTATIONS


@pytest.mark.parametrize("cls", benchmarks(), ids=lambda cls: cls.__name__)
def test_a_benchmark_runs_at_its_smallest_size(cls: Any, implementation: Implementation) -> None:
    if ":" in implementation.name:
        pytest.skip("benchmarks make their caches by name")
    assert cls.params[0] == triradix.IMPLEMENTATIONS
    assert len(cls.params) == len(cls.param_names)
    assert timed(cls)
    for name in timed(cls):
        benchmark = cls()
        arguments = (implementation.name, min(cls.params[1]))
        benchmark.setup(*arguments)
        getattr(benchmark, name)(*arguments)
        benchmark.cache.check()


@pytest.mark.parametrize("cls", benchmarks(), ids=lambda cls: cls.__name__)
def test_a_missing_implementation_is_an_error(cls: Any) -> None:
    with pytest.raises(ValueError, match="unknown implementation"):
        cls().setup("fourth", min(cls.params[1]))


def test_the_work_is_the_same_every_time() -> None:
    assert workload.prompts(8, 4, 3) == workload.prompts(8, 4, 3)
    assert workload.groups(150) == workload.groups(150)
    assert len({bytes(key) for key in workload.groups(150)}) == 150
    assert {len(key) for key in workload.groups(150)} == {512 + 128}


def test_the_configuration_keeps_everything_made_in_one_folder() -> None:
    conf = json.loads((FOLDER / "asv.conf.json").read_text())
    for name in ("env_dir", "results_dir", "html_dir"):
        assert (FOLDER / conf[name]).resolve().parent == FOLDER.parent / ".asv"
    assert wheels.CARGO_TARGET.parent == FOLDER.parent / ".asv"
    assert (FOLDER / conf["benchmark_dir"]).is_dir()


def test_a_commit_without_a_part_is_built_and_installed_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(wheels, "pip", lambda *arguments: calls.append(arguments))
    monkeypatch.setenv("CARGO_TARGET_DIR", "")
    checkout, cache = tmp_path / "checkout", tmp_path / "cache"
    checkout.mkdir()
    (checkout / "pyproject.toml").touch()

    wheels.build(checkout, cache)
    assert [call[-1] for call in calls] == [str(checkout)]
    wheels.install(cache)
    assert len(calls) == 1, "nothing was built, so nothing is there to install"
    (wheels.wheel_folder(cache) / "triradix-0.1.0-cp311-cp311-linux_x86_64.whl").touch()
    wheels.install(cache)
    assert calls[-1][-1] == "triradix"
    (wheels.wheel_folder(cache) / "triradix_rust-0.1.0-cp311-cp311-linux_x86_64.whl").touch()
    wheels.install(cache)
    assert calls[-1][-2:] == ("triradix", "triradix-rust")


def test_the_build_script_says_how_it_is_called() -> None:
    done = subprocess.run([sys.executable, FOLDER / "wheels.py", "make"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "usage: wheels.py build|install CACHE\n"
