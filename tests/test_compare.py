"""How `triradix compare` measures: statistics, loops, processes in turns, faults that it must tell."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from triradix.compare import adapter as adapters
from triradix.compare.adapter import CannotDo, Loop, shares, undisturbed
from triradix.compare.driver import Peers, Run, run
from triradix.compare.forks import Go, in_fork, side_by_side
from triradix.compare.gil import Counting
from triradix.compare.report import failed, make_report
from triradix.compare.row import FULL, QUICK, Scale, Work
from triradix.compare.rows import choose, make_works
from triradix.compare.statistics import order, paired_ratio, quartiles
from triradix.compare.systems import SYSTEMS, System

TINY = Scale(
    name="tiny",
    rounds=3,
    fresh_rounds=1,
    passes=2,
    round_ns=20_000,
    conversations=2,
    prompts=3,
    children=40,
    leaves=50,
    growth=(100, 200),
    long_runs=4,
    small_leaves=200,
    nodes=300,
    waiting=10,
    batch=20,
    capacity=2**13,
    read_runs=1,
    path=20,
)
OURS = SYSTEMS[:3]


@pytest.fixture(autouse=True)
def planted_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """The started processes find those of `compare_planted`."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def measure(rows: str, systems: list[System], scale: Scale = TINY, **more: Any) -> tuple[list[Work], Run]:
    works = choose(make_works(scale), rows.split(","))
    return works, run(works, systems, scale, **more)


def planted(name: str, adapter: str, label: str = "") -> System:
    return System(name, label or name, f"compare_planted:{adapter}", True)


def reported(rows: str, systems: list[System], scale: Scale = TINY, **more: Any) -> dict[str, Any]:
    works, result = measure(rows, systems, scale, **more)
    return make_report(works, systems, scale, result, "triradix compare")


# Statistics


def test_quartiles() -> None:
    assert quartiles([5, 1, 2, 3, 4]) == (2, 3, 4)
    assert quartiles([7.0]) == (7, 7, 7)


def test_the_ratio_is_paired_and_its_interval_holds_it() -> None:
    drift = np.linspace(1, 10, 15)  # the machine becomes ten times slower, for both alike
    assert paired_ratio(2 * drift, drift) == (2, 2, 2)

    rng = np.random.default_rng(1)
    theirs = rng.uniform(1, 10, 200)
    ours = theirs * rng.normal(0.5, 0.05, 200)
    ratio, low, high = paired_ratio(ours, theirs)
    assert low < 0.5 < high
    assert low < ratio < high
    assert 0.005 < high - low < 0.03  # about 4 × 1.25 × 0.05 / √200, for a median of normal ratios
    assert paired_ratio(ours, theirs) == (ratio, low, high), "the same figures give the same interval"


def test_the_interval_covers_what_it_says() -> None:
    rng = np.random.default_rng(2)
    for rounds in (6, 7, 15):
        covered = 0
        for _ in range(400):
            _, low, high = paired_ratio(rng.lognormal(0, 0.3, rounds), np.ones(rounds))
            covered += low <= 1 <= high
        assert covered >= 380, f"an interval of 95 % that {rounds} rounds do not bear"


def test_the_interval_is_the_widest_part_that_chance_allows() -> None:
    """As tables of the sign test have it: of 15 figures the 4th and the 12th, of fewer than six all."""

    def ends(rounds: int) -> tuple[float, float]:
        return paired_ratio(np.arange(rounds, 0, -1), np.ones(rounds))[1:]

    assert [ends(rounds) for rounds in (1, 5, 6, 9, 15)] == [(1, 1), (1, 5), (1, 6), (2, 8), (4, 12)]
    assert ends(10_000) == (4902, 5099)


def test_rounds_without_a_figure_are_left_out() -> None:
    assert paired_ratio([1, float("nan"), 3], [1, 1, 0]) == (1, 1, 1)
    with pytest.raises(ValueError, match="no round has both"):
        paired_ratio([1], [0])
    with pytest.raises(ValueError, match="2 rounds cannot be paired with 1"):
        paired_ratio([1, 2], [1])


def test_rounds_go_to_and_fro() -> None:
    assert [order("ab", number) for number in range(4)] == [["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]]


# Loops


def test_a_loop_calls_once_for_each_item_and_keeps_what_it_is_told_to() -> None:
    called: list[int] = []
    loop = Loop("item", "call(item); keep(item)", "keep(item)", {"call": called.append})
    assert loop([1, 2, 3]) >= 0
    assert called == [1, 2, 3]
    assert loop.kept == [1, 2, 3]
    loop([4], times=5)
    assert called[3:] == [4] * 5


def test_a_loop_takes_its_own_time_off() -> None:
    items = list(range(1000))
    nothing = Loop("item", "pass", "pass", {})
    assert nothing(items, 50) < 5
    work = Loop("item", "sum(numbers)", "pass", {"numbers": range(1000)})
    assert work(items[:50], 2) > 1000


def test_what_a_part_takes_by_itself_is_none_of_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock takes 200 ns, the loop 10 and the call 90 an item: as long as that is all, 90 is the figure."""
    parts: list[int] = []

    def elapsed(run: object, items: list[int], times: int) -> int:
        timed = run is loop._timed
        parts.extend([len(items) * times] * timed)
        return 200 + (100 if timed else 10) * len(items) * times

    monkeypatch.setattr(adapters, "_elapsed", elapsed)
    monkeypatch.setattr(adapters, "preemptions", lambda: 0)
    loop = Loop("item", "call(item)", "pass", {"call": len})
    assert loop(range(16)) == pytest.approx(90, abs=0.1)
    assert parts == [2] * 8
    parts.clear()
    assert loop(range(16)) == pytest.approx(90, abs=0.1)
    assert parts == [16], "a part of two calls is too short to be timed"
    assert loop(range(1000)) == loop(range(10), 100) == pytest.approx(90, abs=0.1)
    assert parts[1:] == [125] * 8 + [120, 130, 120, 130] * 2


def test_the_number_of_passes_grows_with_the_time_of_a_round() -> None:
    loop = Loop("item", "sum(numbers)", "pass", {"numbers": range(100)})
    assert 1 <= loop.times_for([None], 1) <= loop.times_for([None], 3_000_000)


def test_pieces_that_lost_the_core_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = [0]
    monkeypatch.setattr(adapters, "preemptions", lambda: lost[0])

    def piece(elapsed: int, disturbed: bool) -> Callable[[], int]:
        def measured() -> int:
            lost[0] += disturbed
            return elapsed

        return measured

    assert undisturbed([(piece(10, False), 2), (piece(900, True), 2), (piece(30, False), 2)]) == 10
    assert undisturbed([(piece(800, True), 4), (piece(900, True), 4)]) == 212.5
    assert [sum(shares(count)) for count in (1, 7, 8, 100)] == [1, 7, 8, 100]


def test_what_a_system_lacks_has_a_sentence() -> None:
    from triradix.compare.dynamo import BlockIndex

    with pytest.raises(CannotDo, match="indexes hashed blocks"):
        BlockIndex(1)


# Forks


def test_work_in_a_fork_leaves_no_trace() -> None:
    seen: list[int] = []
    assert in_fork(lambda: [seen.append(1), len(seen)][1]) == 1
    assert seen == []
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        in_fork(lambda: 1 / 0)
    with pytest.raises(RuntimeError, match="died"):
        in_fork(lambda: os._exit(3))


def test_forks_side_by_side_wait_for_each_other() -> None:
    def part(number: int) -> Callable[[Go], int]:
        def work(go: Go) -> int:
            go()
            return number

        return work

    assert side_by_side([part(1), part(2)]) == [1, 2]


# Rows


def test_rows_have_names_of_their_own_and_bars_of_known_systems() -> None:
    rows = [row for work in make_works(QUICK) for row in work.rows]
    assert len({row.name for row in rows}) == len(rows)
    assert len({row.title for row in rows}) == len(rows)
    known = {system.name for system in SYSTEMS}
    for row in rows:
        assert row.title
        assert {bar.system for bar in row.bars} | {bar.versus for bar in row.bars if bar.versus} <= known


def test_a_floor_goes_over_the_bytes_of_one_pass() -> None:
    """Of keys (8 bytes a token) and of what they meet (4), however much more the tree holds."""
    floors = {row.name: row.floor for work in make_works(FULL) for row in work.rows if row.floor}
    assert floors["hot-1k"].working_set == 12 * 1024
    assert floors["hot-8k-u32"].working_set == 8 * 8192
    assert floors["prompt-match"].working_set == 1000 * 8 * (2048 + 256) + 4 * (2048 + 1000 * 256)
    assert floors["children-match"].working_set == 1000 * 8 * 64 + 4 * (32 + 1000 * 32)
    assert floors["children-match"].working_set < FULL.children * 32 * 4


def test_the_thread_that_is_watched_counts_and_ends() -> None:
    with Counting() as other:
        # A busy machine may give it no processor for a while.
        while not other.speed(lambda: time.sleep(0.01), 1_000_000):
            pass
    assert other.speed(lambda: None, 1_000_000) == 0


def test_rows_are_chosen_by_pattern() -> None:
    chosen = choose(make_works(TINY), ["hot-8k*", "unlock"])
    assert [work.name for work in chosen] == ["hot-8k", "hot-8k-u32", "lock"]
    with pytest.raises(ValueError, match=r"no row is called 'warm\*'; there are: hot-16, hot-128, "):
        choose(make_works(TINY), ["hot*", "warm*"])


# Runs


def test_every_row_measures_all_three() -> None:
    works, result = measure("*", list(OURS))
    assert result.missing == {}
    assert set(result.versions) == {"reference", "cython", "rust", "floor"}
    for work in works:
        for row in work.rows:
            measured = result.rows[row.name]
            assert not measured.failed, (row.name, measured.missing)
            if work.machine:
                assert len(measured.floor) == TINY.rounds
                assert min(measured.floor) >= 0
                continue
            rounds = TINY.fresh_rounds if work.afresh else TINY.rounds
            if measured.missing:
                assert set(measured.missing.values()) <= {"needs two cores"}
                continue
            assert {name: len(figures) for name, figures in measured.rounds.items()} == dict.fromkeys(
                ("reference", "cython", "rust"), rounds
            )
            assert len(measured.floor) == (rounds if row.floor else 0)
            assert np.isfinite(list(measured.rounds.values())).all()


def test_a_slow_system_is_reported_as_lost() -> None:
    """A raw peer that is plain Python, and a Rust that sleeps: behind the bar, behind the peer, above the floor."""
    peer = System("sglang-rust-raw", "SGLang-Rust raw", "triradix.compare.trees:Reference", False)
    systems = [planted("rust", "Slow", "Rust (ours)"), peer]
    made = reported("hot-128", systems, replace(TINY, rounds=5), peers=Peers(Path(sys.executable), Path("none")))
    (row,) = made["rows"]
    cell = row["cells"]["rust"]
    assert cell["met"] is False
    assert cell["within_floor"] is False
    assert cell["median"] > 1000
    assert cell["ratio"]["versus"] == "sglang-rust-raw"
    assert cell["ratio"]["low"] > 1
    assert cell["quotient"] > 10
    assert len(cell["rounds"]) == 5
    assert cell["q1"] <= cell["median"] <= cell["q3"]
    lost = " | ".join(row["lost"])
    assert "the bar: Rust at most 1/5 of SGLang-Rust raw" in lost
    assert "more than" in lost
    assert "Rust (ours) is behind SGLang-Rust raw" in lost
    assert failed(made) == []


def test_a_wrong_answer_is_no_figure() -> None:
    made = reported("hot-16", [OURS[0], planted("rust", "Wrong", "Rust (ours)")])
    cell = made["rows"][0]["cells"]["rust"]
    assert cell["median"] is None
    assert cell["missing"] == "answered 15 where reference answered 16"
    assert failed(made) == ["Rust (ours) has no figure: answered 15 where reference answered 16"]
    assert made["rows"][0]["lost"] == failed(made)
    assert made["rows"][0]["cells"]["reference"]["median"] > 0


def test_what_the_timed_call_hands_over_is_looked_at_too() -> None:
    made = reported(
        "slots-8k,batch-single,evict,chat-match,lock", [OURS[0], planted("rust", "WrongSlots", "Rust (ours)")]
    )
    rows = {row["name"]: row["cells"]["rust"] for row in made["rows"]}
    assert "answered [8192, 8191, [1, 2, 3], " in rows["slots-8k"]["missing"]
    assert ", []] where reference answered [[" in rows["batch-single"]["missing"]
    assert "answered [[511, " in rows["evict"]["missing"]
    assert ", [[0, 0], [0, " in rows["chat-match-resumed"]["missing"]
    assert "answered [[2048, " in rows["lock"]["missing"]


def test_a_row_that_runs_ends_with_what_waits_for_it() -> None:
    """Also where that is killed, and the row would go on for a minute."""
    read, write = os.pipe()
    script = (
        "import os, sys, time\n"
        "from triradix.compare.forks import in_fork\n"
        "from triradix.processes import end_with_parent\n"
        "def row():\n"
        "    os.write(int(sys.argv[1]), b'begun')\n"
        "    time.sleep(60)\n"
        "    os.write(int(sys.argv[1]), b'survived')\n"
        "if os.fork():\n"
        "    os.wait()\n"
        "else:\n"
        "    end_with_parent()\n"
        "    in_fork(row)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(write)], pass_fds=[write]) as process:
        os.close(write)
        assert os.read(read, 5) == b"begun"
        process.kill()
    with os.fdopen(read, "rb") as rest:
        assert rest.read() == b""


def test_a_system_that_dies_or_was_not_built_leaves_the_others() -> None:
    systems = [planted("cython", "Dies"), planted("rust", "Absent"), OURS[0]]
    made = reported("hot-16,hot-128", systems)
    assert [system["missing"] for system in made["systems"]] == [None, "ImportError: it was never built", None]
    for row in made["rows"]:
        assert row["cells"]["reference"]["median"] > 0
        assert row["cells"]["cython"]["missing"] == "its process ended with signal 9"
    assert len(failed(made)) == 3


def test_what_is_printed_at_the_start_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nprint('hello')\nos.write(1, b'7\\n\\xff')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    made = reported("hot-16", OURS[:1])
    assert made["rows"][0]["cells"]["reference"]["median"] > 0


def test_peers_that_are_not_installed_are_left_out() -> None:
    made = reported("hot-16", [OURS[0], SYSTEMS[3]], not_installed="not installed: no network")
    assert made["systems"][1]["missing"] == "not installed: no network"
    assert list(made["rows"][0]["cells"]) == ["reference"]
    assert failed(made) == []


def test_peers_whose_python_cannot_be_started_are_left_out(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("no program")
    made = reported("hot-16", [OURS[0], SYSTEMS[3]], peers=Peers(python, tmp_path))
    assert made["systems"][1]["missing"] == "its Python cannot be started: Permission denied"
    assert made["rows"][0]["cells"]["reference"]["median"] > 0


# The floor


def test_the_floor_compares_copies_and_follows() -> None:
    from triradix.compare import floor

    keys = np.arange(12, dtype=np.int64).reshape(2, 6)
    stored = keys.astype(np.uint32)
    assert floor.compare_int64(keys, stored, 3) == 0
    assert floor.compare_int32(stored.copy(), stored, 3) == 0
    keys[1, 5] += 2**32  # the upper half counts too
    assert floor.compare_int64(keys, stored, 3) == 3
    assert floor.compare_int32(stored[:, ::-1].copy(), stored, 3) == 6
    for compare in (floor.compare_int64, floor.compare_int32):
        with pytest.raises(ValueError, match="keys of 6 tokens, stored rows of 5"):
            compare(keys.astype(np.int64 if compare is floor.compare_int64 else np.uint32), stored[:, :5].copy(), 1)
        with pytest.raises(ValueError, match="nothing to compare"):
            compare(keys[:0].astype(np.int64 if compare is floor.compare_int64 else np.uint32), stored, 1)

    target = np.zeros(6, np.int64)
    floor.copy_int64(target, keys[0].copy(), 1)
    assert target.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="a target of 6 slots for 5"):
        floor.copy_int64(target, target[:5].copy(), 1)

    chase = floor.Chase(np.zeros(80, np.uintp), np.random.default_rng(0).permutation(10).astype(np.uintp))
    assert len({chase.follow(1) for _ in range(10)}) == 10, "the cycle goes through every line"
    with pytest.raises(ValueError, match="8 for each of 10 lines"):
        floor.Chase(np.zeros(79, np.uintp), np.arange(10).astype(np.uintp))
    assert floor.empty(None) is None  # type: ignore[func-returns-value]
