"""The serving experiment without its engine: what is run, what the probe sees, and what is said of it."""

from __future__ import annotations

import io
import json
import os
import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from triradix.replay.requests import Request, Segments, Trace
from triradix.serving.client import Rows
from triradix.serving.engine import BACKENDS
from triradix.serving.experiment import CannotContinue, Folder, main, run_line
from triradix.serving.experiment_page import render
from triradix.serving.experiment_table import print_tables, sentences
from triradix.serving.measured import figures
from triradix.serving.model import VOCABULARY
from triradix.serving.plan import SHARED, TRACE, Run, Settings, bench_flags, left, sessions
from triradix.serving.probe import Probe
from triradix.serving.session import EngineFailed, Session, _process, as_flags
from triradix.serving.summary import summed_up
from triradix.serving.trace import drawn, scaled_rows

SMALL = Settings(concurrencies=(1, 8), repeats=3, requests=16, trace="a trace")


def test_every_point_is_run_once_a_repeat_and_in_an_order_of_its_own() -> None:
    runs = [run for session in sessions(SMALL) for run in session]
    assert len(runs) == len(set(runs)) == 6 * 2 * 2 * 3
    for session in sessions(SMALL):
        assert len({(run.cache, run.repeat) for run in session}) == 1
    orders = {tuple(session[0].cache for session in sessions(SMALL) if session[0].repeat == r) for r in range(3)}
    assert len(orders) == 3 and all(set(order) == set(BACKENDS) for order in orders)
    assert len({tuple((run.workload, run.concurrency) for run in session) for session in sessions(SMALL)}) > 6
    assert list(sessions(SMALL)) == list(sessions(SMALL))
    assert {run.workload for session in sessions(Settings(trace=None)) for run in session} == {SHARED}


def test_what_is_done_is_not_run_again() -> None:
    first, second, *_ = sessions(SMALL)
    assert left(SMALL, [*first, second[0]], 1) == [second[1:]]
    assert left(SMALL, [run for session in sessions(SMALL) for run in session], None) == []


def test_flags() -> None:
    flags = bench_flags(SMALL, Run(0, "none", SHARED, 8), "rows")
    assert flags[flags.index("--max-concurrency") + 1] == "8"
    groups, each = (int(flags[flags.index(f"--gsp-{name}") + 1]) for name in ("num-groups", "prompts-per-group"))
    assert groups * each == SMALL.requests
    assert "--tokenize-prompt" in flags and "--flush-cache" in flags
    trace = bench_flags(SMALL, Run(0, "none", TRACE, 8), "rows")
    assert trace[trace.index("--dataset-path") + 1] == "rows" and "--tokenize-prompt" not in trace
    options = {"page_size": 4, "disable_radix_cache": True, "enable_metrics": False}
    assert as_flags(options) == ["--page-size", "4", "--disable-radix-cache"]


def request(ids: list[int], length: int, answer: int = 640) -> Request:
    lengths = np.full(len(ids), 512, np.int64)
    lengths[-1] = length - 512 * (len(ids) - 1)
    return Request(Segments(np.array(ids, np.int64), lengths), Segments(np.array([-1]), np.array([answer])))


def test_a_trace_is_made_smaller_and_shares_what_it_shared() -> None:
    requests = [request([0, 1], 1024), request([0, 1, 2], 1500), request([0, 7], 700), request([0, 1, 2, 3], 2048, 1)]
    rows = scaled_rows(Trace("trace", requests, 512), 4, seed=0)
    assert [len(row["input_ids"]) for row in rows] == [64, 64 + 476 // 16, 32 + 188 // 16, 128]
    assert [row["output_len"] for row in rows] == [10, 10, 10, 1]
    first, second, other, last = (row["input_ids"] for row in rows)
    assert second[:64] == first == last[:64] and other[:32] == first[:32] and other[32:] != first[32:43]
    assert all(4 <= token < VOCABULARY for row in rows for token in row["input_ids"])


def test_whole_conversations_are_drawn() -> None:
    requests = [request([0, turn % 50, *range(100, 100 + turn // 50)], 512 * (2 + turn // 50)) for turn in range(250)]
    some = drawn(requests, 20, seed=3)
    assert len(some) == 20
    assert len({int(each.prompt.ids[1]) for each in some if isinstance(each.prompt, Segments)}) == 4
    places = [next(index for index, one in enumerate(requests) if one is each) for each in some]
    assert places == sorted(places)
    assert [each is one for each, one in zip(drawn(requests, 20, seed=4), some, strict=True)].count(True) < 20


def test_the_clients_rows_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"input_ids": [5, 6, 7], "output_len": 2}, {"input_ids": [8], "output_len": 1}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = SimpleNamespace(DatasetRow=lambda **fields: fields)
    monkeypatch.setitem(__import__("sys").modules, "sglang", SimpleNamespace())
    monkeypatch.setitem(__import__("sys").modules, "sglang.benchmark", SimpleNamespace())
    monkeypatch.setitem(__import__("sys").modules, "sglang.benchmark.datasets", made)
    found = Rows.from_args(SimpleNamespace(dataset_path=str(path), num_prompts=1)).load(tokenizer=None)
    assert found == [{"prompt": [5, 6, 7], "prompt_len": 3, "output_len": 2}]


class Cache:
    """As a cache of SGLang: one of its calls makes another."""

    size = 3

    def match_prefix(self, seconds: float) -> str:
        burn(seconds)
        return self.lock()

    def lock(self) -> str:
        return "locked"

    def reset(self) -> None:
        pass

    def supports_fast_match_prefix(self) -> bool:
        return False


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class Scheduler:
    """The loop of one, with a batch where it is told."""

    def __init__(self, probe: Probe) -> None:
        self.probe, self.cache = probe, probe.around_making(Cache)

    def turn(self, batch: Any, work: Callable[[], None] = lambda: None) -> None:
        self.probe.around_planning(lambda: SimpleNamespace(batch_to_run=batch))
        work()
        if batch is not None:
            self.probe.around_model(lambda scheduler, batch: burn(0.004), self, batch)


def batch(extend: bool, lengths: list[tuple[int, int]]) -> Any:
    return SimpleNamespace(
        forward_mode=SimpleNamespace(is_extend=lambda: extend),
        extend_lens=[new for new, _ in lengths],
        prefix_lens=[before for _, before in lengths],
        reqs=[SimpleNamespace(origin_input_ids=[1] * before, output_ids=[1] * new) for new, before in lengths],
    )


def test_the_probe_sees_calls_steps_and_the_model(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    scheduler = Scheduler(Probe(str(path)))
    assert scheduler.cache.match_prefix(0.0) == "locked"
    scheduler.turn(None, scheduler.cache.reset)
    scheduler.turn(None, scheduler.cache.lock)  # asked while idle: left out
    scheduler.turn(batch(True, [(10, 100), (4, 0)]), lambda: scheduler.cache.match_prefix(0.002))
    scheduler.turn(batch(False, [(1, 110), (2, 50)]))
    scheduler.turn(None, scheduler.cache.lock)  # the results of the last batch
    assert "busy" not in path.read_text()  # nothing is written while there is work
    scheduler.turn(None)
    first, flushed, *steps = [json.loads(line) for line in path.read_text().splitlines()]
    assert first["cache"] == "Cache" and 0 < first["clock"] < 100_000
    assert flushed == {"reset": True}
    prefill, decode, results = steps
    assert [[name for name, _ in step["calls"]] for step in steps] == [["match_prefix"], [], ["lock"]]
    assert prefill["extend"] == [2, 14, 10 * 100 + 50 + 8] and decode["decode"] == [2, 163]
    assert "forward" not in results
    assert prefill["calls"][0][1] >= 2e6 and prefill["forward"] >= 4e6
    assert prefill["busy"] >= prefill["calls"][0][1] + prefill["forward"]


def test_a_call_that_raises_is_seen_too(tmp_path: Path) -> None:
    scheduler = Scheduler(Probe(str(tmp_path / "steps")))
    with pytest.raises(TypeError):
        scheduler.cache.match_prefix("no number")
    assert scheduler.cache.lock() == "locked"
    assert [name for name, _ in scheduler.probe._calls] == ["match_prefix", "lock"]


def step(calls: list[tuple[str, int]], busy: int = 10_000, forward: int = 6_000) -> dict[str, Any]:
    return {"busy": busy, "wall": 2 * busy, "forward": forward, "calls": calls}


def test_figures_by_hand() -> None:
    found = figures([step([("match", 1000), ("lock", 100)]), step([("match", 3000)]), step([])], requests=2)
    assert found["cache s"] == pytest.approx(4.1e-6) and found["busy s"] == pytest.approx(30e-6)
    assert found["share"] == pytest.approx(4.1 / 30)
    assert found["share without model"] == pytest.approx(4.1 / 12)
    assert found["cache µs per request"] == pytest.approx(2.05)
    assert list(found["calls"]) == ["match", "lock"]
    assert found["calls"]["match"]["count"] == 2 and found["calls"]["match"]["mean µs"] == 2
    with pytest.raises(ValueError, match="is its plugin in use"):
        figures([step([])], requests=2)


def line(run: Run, throughput: float, cache: float) -> dict[str, Any]:
    bench = {
        "completed": 16,
        "duration": 1.0,
        "request_throughput": throughput,
        "median_ttft_ms": 1000 / throughput,
        "p99_ttft_ms": 3000 / throughput,
        "cache_report": {"total_cached_tokens": 30, "total_prompt_tokens": 60},
    }
    found = figures([step([("match_prefix", int(cache * 16 * 1000))], busy=int(1e9))], 16)
    return run_line(run, bench, found) | {"load": 1.0, "load before the engine": 0.5}


def report(settings: Settings, throughput: Callable[[Run, int], float]) -> dict[str, Any]:
    """Each cache takes 100 µs a request, Rust's 25; how fast an engine is, is told by the caller."""
    runs = [run for session in sessions(settings) for run in session]
    lines = [line(run, throughput(run, n), 25 if run.cache == "triradix-rust" else 100) for n, run in enumerate(runs)]
    calls = [
        {**vars(run), "call": "match_prefix", "count": 32, "total µs": 9.0, "mean µs": 1, "p50 µs": 1, "p99 µs": 2}
        for run in runs
    ]
    facts = {
        "machine": {"cpu": "a <CPU>", "cores": 2, "python": "CPython 3.11"},
        "settings": settings.written(),
        "triradix": "0",
        "commit": None,
        "created": "today",
    }
    return {**facts, **summed_up(lines, calls)}


def noisy(run: Run, number: int) -> float:
    drift = random.Random(number).uniform(1, 1.1)
    return 100 * drift * (0.4 if run.cache == "none" else 1)


def test_only_what_exceeds_the_noise_is_claimed() -> None:
    verdicts = report(SMALL, noisy)["verdicts"]
    against_none = [each for each in verdicts if each["against"] == "none"]
    assert against_none and all(len(each["apart"]) == each["points"] == 2 for each in against_none)
    among = [each for each in verdicts if each["against"] == "sglang-rust"]
    assert {each["cache"] for each in among} == set(BACKENDS) - {"none", "sglang-rust"}
    assert all(each["points"] == 2 and each["apart"] == [] for each in among)
    text = " ".join(sentences(report(SMALL, noisy)))
    assert "Throughput not apart at any of 8 points" in text and "Throughput apart at 10 of 10 points" in text


def test_a_difference_that_is_there_is_claimed() -> None:
    def faster(run: Run, number: int) -> float:
        return noisy(run, number) * (1.5 if run.cache == "triradix-rust" and run.concurrency == 8 else 1)

    found = report(SMALL, faster)
    apart = {
        (each["cache"], at["concurrency"])
        for each in found["verdicts"]
        for at in each["apart"]
        if each["against"] != "none"
    }
    assert apart == {("triradix-rust", 8)}
    assert any("(triradix-rust)" in sentence for sentence in sentences(found))


def test_one_repeat_claims_nothing() -> None:
    quick = report(Settings.read({**SMALL.written(), "repeats": 1}), noisy)
    assert all(each["apart"] == [] and each["points"] == 0 for each in quick["verdicts"])
    assert "none is claimed" in " ".join(sentences(quick))


def test_the_time_in_the_cache_against_sglangs() -> None:
    ratios = {(each["workload"], each["cache"]): each for each in report(SMALL, noisy)["ratios"]}
    assert ratios[SHARED, "triradix-rust"]["ratio"] == pytest.approx(0.25)
    assert ratios[TRACE, "triradix-reference"]["ratio"] == pytest.approx(1)
    assert ratios[SHARED, "triradix-rust"]["pairs"] == 6


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_page_holds_every_cache_and_loads_nothing(repeats: int) -> None:
    found = report(Settings.read({**SMALL.written(), "repeats": repeats}), noisy)
    page = render(json.loads(json.dumps(found)))
    titles = re.findall(r"<figcaption><b>(.*?)</b>", page)
    assert len(titles) == 12
    assert all(page.count(f">{cache}<") > 12 for cache in BACKENDS)
    assert "a &lt;CPU&gt;" in page
    assert f"--concurrencies 1,8 --repeats {repeats} --requests 16" in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "$" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert "nan" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    console = Console(record=True, width=160, file=io.StringIO())
    print_tables(found, console)
    assert console.export_text().count("triradix-rust") >= 4


def test_a_folder_goes_on_only_with_the_same_settings(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "out")
    folder.begin(SMALL, keep=True)
    runs = [run for session in sessions(SMALL) for run in session][:2]
    for run in runs:
        folder.append("runs", line(run, 10, 5))
    folder.begin(SMALL, keep=True)
    assert folder.done() == runs
    with pytest.raises(CannotContinue, match="other settings"):
        folder.begin(Settings(), keep=True)
    folder.begin(Settings(), keep=False)
    assert folder.done() == []


def test_what_cannot_be_used_is_said_before_an_engine_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("triradix.serving.experiment.find", lambda folder: Path("python"))
    missing = tmp_path / "missing.jsonl"
    assert main(["--trace", str(missing), "--out", str(tmp_path / "out")]) == 1
    assert f"{missing} cannot be read" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--caches", "none,other"])
    assert "unknown cache 'other'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("print('failed: no such model', flush=True)", "no such model; the engine: first / last words"),
        ("sys.exit('killed')", "bench_serving failed .* killed; the engine: first"),
        ("time.sleep(60)", "bench_serving failed"),
        (
            "open(line[line.index('--output-file') + 1], 'w').write('{\"completed\": 3}'); print('done')",
            "3 of 16 requests",
        ),
    ],
)
def test_a_run_that_fails_says_why(does: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And does not wait for ever."""
    monkeypatch.setattr("triradix.serving.session._RUN_SECONDS", 2 if "sleep" in does else 600)
    (tmp_path / "engine.log").write_text("first\nlast words\n")
    probe = tmp_path / "steps.jsonl"
    probe.touch()
    program = f"import json, sys, time; line = json.loads(input()); {does}"
    with (
        (tmp_path / "client.log").open("w") as log,
        _process(
            [sys.executable, "-c", program], dict(os.environ), stdin=PIPE, stdout=PIPE, stderr=log, text=True
        ) as client,
    ):
        session = Session(client, client, 1, probe, tmp_path)
        with pytest.raises(EngineFailed, match=says):
            session.run(SMALL, Run(0, "none", SHARED, 1), "rows")
    assert client.poll() is not None


def test_steps_count_from_the_last_flush_on(tmp_path: Path) -> None:
    probe = tmp_path / "steps.jsonl"
    lines = [{"cache": "x"}, {"busy": 1}, {"reset": True}, {"busy": 2}, {"reset": True}, {"busy": 3}, {"busy": 4}]
    probe.write_text("".join(json.dumps(each) + "\n" for each in lines))
    session = Session(None, None, 1, probe, tmp_path)  # type: ignore[arg-type]
    assert session._steps() == [{"busy": 3}, {"busy": 4}]
    with probe.open("a") as file:
        file.write('{"busy": 5}\n')
    assert session._steps() == [{"busy": 5}]
