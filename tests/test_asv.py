"""The benchmarks of asv: each runs once here, on every implementation and small, so that none breaks unseen."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from asv_runner.discovery import list_benchmarks
from implementations import Implementation

import triradix
from triradix.config import POLICIES

FOLDER = Path(__file__).parent.parent / "asv_benchmarks"
sys.path.insert(0, str(FOLDER.parent))  # asv_benchmarks is no installed package

from asv_benchmarks import bench, history, machines, noise, selections, wheels  # noqa: E402
from asv_benchmarks.benchmarks import commit, replay, threads, workload  # noqa: E402

KIND = re.compile("(time|track|peakmem)_")
CONF = json.loads((FOLDER / "asv.conf.json").read_text())


def benchmarks() -> list[Any]:
    """The classes that asv finds."""
    modules = [
        importlib.import_module(f"asv_benchmarks.benchmarks.{path.stem}")
        for path in sorted((FOLDER / "benchmarks").glob("[!_]*.py"))
    ]
    return [
        cls
        for module in modules
        for name, cls in inspect.getmembers(module, inspect.isclass)
        if cls.__module__ == module.__name__ and not name.startswith("_") and methods(cls)
    ]


def methods(cls: Any) -> list[str]:
    return [name for name in dir(cls) if KIND.match(name)]


def small(cls: Any, implementation: str) -> Iterator[tuple[Any, ...]]:
    """The smallest of each number, all of everything else."""
    rest = [(min(each),) if isinstance(each[0], int) else each for each in cls.params[1:]]
    for parameters in product(*rest):
        yield (implementation, *parameters)


@pytest.fixture(scope="module")
def as_asv_sees_them() -> dict[str, dict[str, Any]]:
    found = StringIO()
    list_benchmarks(str(FOLDER / "benchmarks"), found)
    return {each["name"]: each for each in json.loads(found.getvalue())}


@pytest.fixture(scope="module")
def names(as_asv_sees_them: dict[str, dict[str, Any]]) -> list[str]:
    return [
        f"{name}({', '.join(parameters)})"
        for name, each in as_asv_sees_them.items()
        for parameters in product(*each["params"])
    ]


@pytest.fixture
def small_sizes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module, name, value in (
        (workload, "COLD_TOKENS", 1 << 17),
        (workload, "RUNS", 300),
        (workload, "NODES", 2_000),
        (threads, "WATCHED", 0.02),
        (threads, "CACHES", 4),
        (threads, "CACHE_RUNS", 70),
        (threads, "INTERRUPTED_KEYS", 20_000),
        (replay, "REQUESTS", 20),
    ):
        monkeypatch.setattr(module, name, value)
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"token_ids": [1, 2, 3]}\n' * 3)
    monkeypatch.setenv(replay.TRACE, str(trace))


@pytest.mark.parametrize("cls", benchmarks(), ids=lambda cls: cls.__name__)
def test_a_benchmark_runs(cls: Any, implementation: Implementation, small_sizes: None) -> None:
    """Nothing is skipped: this commit has everything. The rules for size do not reach down here."""
    if ":" in implementation.name:
        pytest.skip("benchmarks make their caches by name")
    assert cls.params[0] == triradix.IMPLEMENTATIONS
    assert len(cls.params) == len(cls.param_names)
    made = (cls().setup_cache(),) if hasattr(cls, "setup_cache") else ()
    for parameters in small(cls, implementation.name):
        for name in methods(cls):
            benchmark = cls()
            for _sample in range(2):
                benchmark.setup(*made, *parameters)
            figure = getattr(benchmark, name)(*made, *parameters)
            if name.startswith("track_"):
                assert figure >= 0
            if name.startswith("time_"):
                assert 0 < benchmark.timer() < 1e9
            if hasattr(benchmark, "cache"):
                benchmark.cache.check()


def test_a_sample_of_many_calls_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    timing = importlib.import_module("asv_benchmarks.benchmarks.timing")
    monkeypatch.setattr(timing, "process_time", lambda: 50.0)
    monkeypatch.setattr(timing, "perf_counter", lambda: 80.0)
    benchmark = timing.Timed()
    benchmark.one_of(100)
    assert benchmark.timer() == 0.5
    benchmark.one_of(100, threads=2)
    assert benchmark.timer() == 0.8


@pytest.mark.parametrize(("whole", "kept", "percent"), [(200, 200, 0), (200, 100, 50), (200, 50, 75), (200, 220, -10)])
def test_what_threads_lose(whole: float, kept: float, percent: float) -> None:
    assert threads.lost(whole, kept) == pytest.approx(percent)


def test_names_and_units(as_asv_sees_them: dict[str, dict[str, Any]]) -> None:
    assert len(as_asv_sees_them) == sum(len(methods(cls)) for cls in benchmarks())
    units = {each["unit"] for each in as_asv_sees_them.values()}
    assert units == {"seconds", "bytes", "objects", "% of the other thread's time", "% of two threads' work"}
    for name, each in as_asv_sees_them.items():
        assert re.fullmatch(r"[a-z]+\.[A-Z]\w+\.(time|track|peakmem)_[a-z0-9_]+", name)
        assert each["version"].isdigit(), f"{name} has no version of its own: asv forgets its figures at every edit"
        assert each["type"] != "time" or each["number"] == 1, f"{name}: a second call would find its own work done"
    for cls in benchmarks():
        assert cls.__doc__, f"{cls.__name__} does not say what it measures"


def test_what_is_written_out_is_what_the_package_has() -> None:
    assert workload.IMPLEMENTATIONS == triradix.IMPLEMENTATIONS
    assert workload.POLICIES == POLICIES


def test_the_work_is_the_same_every_time() -> None:
    assert workload.prompts(8, 4, 3) == workload.prompts(8, 4, 3)
    first, second = (list(workload.groups(5, 150, 512, 128)) for _ in range(2))
    assert [keys.tobytes() for keys in first] == [keys.tobytes() for keys in second]
    keys = [row.tobytes() for group in first for row in group]
    assert len(keys) == len(set(keys)) == 150
    assert {len(set(map(bytes, group[:, :512].copy()))) for group in first} == {1}


# What is missing: an error, or a skip where the commit does not have it yet.


def test_an_implementation_that_is_not_built_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triradix.cython_impl", None)
    with pytest.raises(ImportError):
        commit.create("cython")


@pytest.mark.parametrize("cls", benchmarks(), ids=lambda cls: cls.__name__)
def test_an_implementation_that_nobody_knows_is_an_error_and_one_to_come_is_skipped(
    cls: Any, small_sizes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (cls().setup_cache(),) if hasattr(cls, "setup_cache") else ()
    parameters = next(small(cls, "fourth"))
    with pytest.raises(ValueError, match="unknown implementation"):
        cls().setup(*made, *parameters)
    # asv skips what raises this in setup, and nowhere else.
    monkeypatch.setattr(commit, "FILE", tmp_path / "commit.json")
    commit.FILE.write_text('{"parts": []}')
    with pytest.raises(NotImplementedError, match="no part fourth yet"):
        cls().setup(*made, *parameters)


def test_a_part_that_the_commit_has_is_an_error_when_missing_and_one_that_it_has_not_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "FILE", tmp_path / "commit.json")
    monkeypatch.setitem(sys.modules, "triradix.cython_impl", None)
    commit.FILE.write_text('{"parts": ["reference", "cython"]}')
    assert commit.create("reference").total_size() == 0
    with pytest.raises(ImportError):
        commit.create("cython")
    with pytest.raises(NotImplementedError, match="no part rust yet"):
        commit.create("rust")


def test_what_the_contract_of_a_commit_lacks_is_skipped() -> None:
    commit.needs("match_prefix", "key", "start")
    with pytest.raises(NotImplementedError, match="no method defragment yet"):
        commit.needs("defragment")
    with pytest.raises(NotImplementedError, match="no parameter until of match_prefix yet"):
        commit.needs("match_prefix", "until")
    with pytest.raises(NotImplementedError, match="no option compression yet"):
        commit.create("reference", compression=True)
    with pytest.raises(NotImplementedError, match=r"no module triradix\.tiers yet"):
        commit.needs_module("triradix.tiers.disk")
    commit.needs_module("triradix.replay")


def test_a_trace_that_is_named_and_unusable_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "REQUESTS", 1)
    monkeypatch.setenv(replay.TRACE, "/no/such/trace")
    with pytest.raises(ValueError, match="cannot be read"):
        replay.TraceReplay().setup_cache()


# Which benchmarks run.


@pytest.mark.parametrize("profile", selections.PROFILES)
def test_every_pattern_of_a_profile_selects_something(profile: str, names: list[str]) -> None:
    for pattern, regex in zip(
        selections.PROFILES[profile], selections.regexes(selections.PROFILES[profile]), strict=True
    ):
        assert any(re.search(regex, name) for name in names), pattern


def test_each_profile_is_part_of_the_next_and_has_all_three(names: list[str]) -> None:
    chosen = {
        profile: {name for name in names if any(re.search(regex, name) for regex in selections.regexes(patterns))}
        for profile, patterns in selections.PROFILES.items()
    }
    assert chosen["history"] < chosen["short"] < chosen["full"] == set(names)
    for some in chosen.values():
        by_implementation = {
            each: {name.replace(repr(each), "") for name in some if repr(each) in name}
            for each in triradix.IMPLEMENTATIONS
        }
        assert by_implementation["reference"] == by_implementation["cython"] == by_implementation["rust"]


def test_the_readme_counts_them_right(names: list[str]) -> None:
    said = (FOLDER / "README.md").read_text()
    assert f"everything at every size, {len(names)} figures" in said
    assert "sixteen headlines" in said and len(selections.HISTORY) == 16


def test_thresholds_are_for_what_there_is(names: list[str]) -> None:
    assert CONF["continuous_factor"] == bench.continuous_factor() > 1
    for regex, threshold in CONF["regressions_thresholds"].items():
        assert 0.05 <= threshold < 1
        assert any(re.match(regex, name) for name in names), regex
    for name in names:
        assert any(re.match(regex, name) for regex in CONF["regressions_thresholds"]), f"no threshold for {name}"


def test_the_configuration_keeps_everything_made_in_one_folder() -> None:
    for name in ("env_dir", "results_dir", "html_dir"):
        assert (FOLDER / CONF[name]).resolve().parent == FOLDER.parent / ".asv"
    assert wheels.CARGO_TARGET.parent == FOLDER.parent / ".asv"
    assert machines.FILE.parent == FOLDER.parent / ".asv"
    assert CONF["plugins"] == [".machines"] and machines.__file__ == str(FOLDER / "machines.py")
    assert (FOLDER / CONF["benchmark_dir"]).is_dir()


# Building a commit.


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """What pip would have been called with, in an environment of its own."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(wheels, "pip", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    Path(sys.prefix).mkdir()
    for name in ("CARGO_TARGET_DIR", "PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):
        monkeypatch.setenv(name, "")
    return calls


def checkout(folder: Path, *files: str) -> Path:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    return folder


def test_a_commit_is_built_and_installed_with_the_parts_that_it_has(tmp_path: Path, pip: list[tuple[str, ...]]) -> None:
    old = checkout(tmp_path / "old", "pyproject.toml", "reference/cache.py", "rust_impl/__init__.py")
    wheels.build(old, tmp_path / "cache")
    assert [call[-1] for call in pip] == [str(old)]
    pip.clear()
    wheels.install(tmp_path / "cache")
    assert pip[0] == ("uninstall", "--yes", "triradix", "triradix-rust")
    assert pip[1][0] == "install" and pip[1][-2:] == (str(wheels.wheel_folder(tmp_path / "cache")), "triradix")
    installed = json.loads(Path(sys.prefix, wheels.COMMIT_FILE).read_text())
    assert installed == {"distributions": ["triradix"], "parts": ["reference"]}
    assert wheels.COMMIT_FILE == commit.FILE.name


def test_this_commit_has_every_part(tmp_path: Path, pip: list[tuple[str, ...]]) -> None:
    wheels.build(FOLDER.parent, tmp_path / "cache")
    assert json.loads((tmp_path / "cache" / wheels.COMMIT_FILE).read_text()) == {
        "distributions": ["triradix", "triradix-rust"],
        "parts": list(triradix.IMPLEMENTATIONS),
    }


def test_a_part_that_does_not_build_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CARGO_TARGET_DIR", "PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):
        monkeypatch.setenv(name, "")
    broken = checkout(tmp_path / "broken", "pyproject.toml")
    (broken / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "no_such_backend"\n')
    with pytest.raises(subprocess.CalledProcessError):
        wheels.build(broken, tmp_path / "cache")
    assert not (tmp_path / "cache" / wheels.COMMIT_FILE).exists()
    with pytest.raises(SystemExit, match="delete"):
        wheels.install(tmp_path / "cache")


def test_the_build_script_says_how_it_is_called() -> None:
    done = subprocess.run([sys.executable, FOLDER / "wheels.py", "make"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "usage: wheels.py build|install CACHE\n"


# What is kept, and how much it differs by itself.

COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "samples", "profile"]
HOT = "match.HotMatch.time_one_match"


def measured(values: list[float | None], commit_hash: str = "a" * 40, **others: list[Any]) -> dict[str, Any]:
    row = [values, [["'rust'"], ["1"], ["64", "1024"]], "1", 0, 1.0, values, [[1.0], [1.0]]]
    return {"commit_hash": commit_hash, "result_columns": COLUMNS, "results": {HOT: row, **others}, "version": 2}


def test_the_history_keeps_what_its_profile_selects_and_gives_it_back(tmp_path: Path) -> None:
    results, kept = tmp_path / "results", tmp_path / "history"
    (results / "m").mkdir(parents=True)
    (results / "m" / "machine.json").write_text('{"machine": "m", "version": 1}')
    commit_file = measured([1.0, 2.0], **{"match.Miss.time_one_match": [[3.0], [["'rust'"], ["1"], ["128"]], "1"]})
    (results / "m" / "aaaaaaaa-env.json").write_text(json.dumps(commit_file))
    described = {HOT: {"name": HOT}, "match.Miss.time_one_match": {"name": "…"}, "version": 2}
    (results / "benchmarks.json").write_text(json.dumps(described))

    assert history.keep("m", results, kept) == 1
    row = json.loads((kept / "m" / "aaaaaaaa-env.json").read_text())["results"]
    assert row == {HOT: [[2.0], [["'rust'"], ["1"], ["1024"]], "1", 0, 1.0, [2.0], None, None]}
    assert json.loads((kept / "benchmarks.json").read_text()) == {HOT: {"name": HOT}, "version": 2}

    assert history.restore(results, kept) == 0
    assert json.loads((results / "benchmarks.json").read_text()) == described
    elsewhere = tmp_path / "elsewhere"
    assert history.restore(elsewhere, kept) == 2
    assert sorted(path.name for path in elsewhere.rglob("*.json")) == [
        "aaaaaaaa-env.json",
        "benchmarks.json",
        "machine.json",
    ]
    with pytest.raises(FileNotFoundError, match="no results of a machine 'other'"):
        history.keep("other", results, kept)


def test_the_spread_of_runs_gives_thresholds() -> None:
    found = noise.spreads([measured([1.0, 2.0]), measured([1.1, 2.0]), measured([1.05, 2.5])])
    assert set(found) == {("match", "rust"), ("match", "all")}
    spread = found["match", "rust"]
    assert spread.figures == 2
    assert spread.largest == pytest.approx(0.25)
    assert spread.median == pytest.approx((0.25 + 0.05 / 1.05) / 2)
    assert noise.thresholds(found) == {"^match\\.": 0.25}
    assert "match       rust" in noise.table(found)
    assert noise.thresholds(noise.spreads([measured([1.0, None])] * 2)) == {"^match\\.": 0.05}


def test_a_spread_needs_two_runs_of_one_commit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    for file, commit_hash in zip(files, "ab", strict=True):
        file.write_text(json.dumps(measured([1.0, 2.0], commit_hash)))
    assert noise.main(["show", str(files[0])]) == 1
    assert noise.main(["show", *map(str, files)]) == 1
    assert capsys.readouterr().err == (
        "noise: a spread needs two runs or more\n"
        "noise: the results are of different commits: their differences are not noise alone\n"
    )
    assert noise.main(["show", str(files[0]), str(files[0])]) == 0
    assert '"regressions_thresholds"' in capsys.readouterr().out


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", "7", '{"commit_hash": "a"}', '{"commit_hash": "a", "results": [1]}']
)
def test_what_is_no_result_is_named(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.json").write_text(content)
    assert noise.main(["show", *[str(tmp_path / "one.json")] * 2]) == 1
    assert capsys.readouterr().err == f"noise: {tmp_path}/one.json is no result of asv\n"
