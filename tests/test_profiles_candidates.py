"""Which functions would Rust pay for? Programs whose right answer is known, and the rules one by one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from profile_samples import GIL_WAIT

from profiles import candidates, ranking, sampler
from profiles.__main__ import main, parser
from profiles.program import Program, Run, calls_a_second
from profiles.ranking import Verdict

PLANTED = Path(__file__).parent / "planted"
BORDER = 50e-9


def look(program: str, *options: str) -> dict[str, Any]:
    command = ["candidates", "--rate", "100", "--seconds", "10", *options, "--", sys.executable]
    return candidates.look(parser().parse_args([*command, str(PLANTED / program)]))


def named(found: dict[str, Any]) -> dict[str, Verdict]:
    return {one.function.name: one for one in found["verdicts"]}


def chosen(found: dict[str, Any]) -> list[str]:
    return [one.function.name for one in found["verdicts"] if one.candidate]


def test_a_hot_loop_is_the_candidate(can_sample: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["candidates", "--rate", "100", "--json", str(tmp_path / "found.json"), "--", sys.executable]
    assert main([*command, str(PLANTED / "hot_loop.py")]) == 0
    said = capsys.readouterr().out
    assert "1. score (tests/planted/hot_loop.py:4, from main): candidate, called often, and dear enough." in said
    assert "To be asked first" in said and "--better-algorithm score or" in said
    verdicts = json.loads((tmp_path / "found.json").read_text())["verdicts"]
    assert [one["function"]["name"] for one in verdicts if one["candidate"]] == ["score"]
    score = verdicts[0]
    assert score["function"]["held"] > 0.6
    assert score["function"]["calls"] > 1000
    assert score["function"]["cost"] > 20e-6
    assert score["often"] and score["bound"] and score["dear"] and not score["holds_up"]
    assert score["saving"] > 0.5


def test_what_only_calls_the_hot_loop_is_none(can_sample: None) -> None:
    found = look("wrapped.py")
    assert chosen(found) == ["score"]
    assert "nearly all of its time is that of score" in named(found)["checked"].why


def test_a_function_that_costs_less_than_the_border_is_none(can_sample: None) -> None:
    found = look("cheap_calls.py")
    add = named(found)["add"]
    assert add.function.calls is not None and add.function.calls > 50_000
    assert add.often and add.dear is False and not add.candidate
    assert "less than 5 crossings" in add.why or "little to save" in add.why
    assert chosen(found) == []


def test_a_wait_for_something_outside_is_none(can_sample: None) -> None:
    found = look("io_wait.py")
    fetch = named(found)["fetch"]
    assert not fetch.bound and "waits" in fetch.why
    assert chosen(found) == []
    assert candidates.sentences(found["verdicts"], found)[-1].startswith("No candidate: ")


def test_what_stands_in_one_line_is_told_apart(can_sample: None) -> None:
    """The generator in it is called for every number, and is no reason against the function around it."""
    found = look("one_line.py", "--rate", "200", "--seconds", "200")
    assert chosen(found) == ["score"], found["verdicts"]
    verdicts = named(found)
    calls = {name.rpartition(".")[2]: one.function.calls for name, one in verdicts.items()}
    assert calls["<genexpr>"] == pytest.approx(201 * calls["score"])
    assert calls["score"] == pytest.approx(20_000 * calls["main"]) == pytest.approx(20_000 * calls["<module>"])


def test_a_better_algorithm_is_asked_for_and_not_guessed(can_sample: None) -> None:
    found = look("quadratic.py")
    assert chosen(found) == ["unique"], found["verdicts"][:3]
    said = candidates.sentences(found["verdicts"], found)[-1]
    assert "whose cost grows more slowly with its input, for unique?" in said
    answered = {**found, "verdicts": again(found, {"unique": True}), "answers": {"unique": True}}
    assert chosen(answered) == []
    assert named(answered)["unique"].why == "a better algorithm comes first"
    denied = {**found, "verdicts": again(found, {"unique": False}), "answers": {"unique": False}}
    assert chosen(denied) == ["unique"]
    assert "grows" not in candidates.sentences(denied["verdicts"], denied)[-1]


def again(found: dict[str, Any], answers: dict[str, bool]) -> list[Verdict]:
    functions = [one.function for one in found["verdicts"]]
    return ranking.rank(functions, found["border"], found["waiting"], answers, found["samples"])


def test_a_convoy_behind_the_gil_is_seen(can_sample: None) -> None:
    found = look("convoy.py")
    assert chosen(found) == ["crunch"]
    crunch = named(found)["crunch"]
    assert crunch.holds_up and crunch.bound  # its waits are for the GIL, and no other
    assert found["waiting"] > 0.5
    assert "holds the GIL while" in candidates.sentences(found["verdicts"], found)[0]
    assert not named(found)["tick"].candidate


def test_what_is_compiled_already_is_none(can_sample: None) -> None:
    found = look("compiled_already.py")
    assert chosen(found) == []
    assert found["held"] < 0.5


def test_a_running_program_is_judged_by_its_shares(can_sample: None, tmp_path: Path) -> None:
    endless = tmp_path / "endless.py"
    endless.write_text((PLANTED / "hot_loop.py").read_text().replace("range(3_000):", "iter(int, 1):"))
    with subprocess.Popen([sys.executable, endless]) as process:
        try:
            options = parser().parse_args(["candidates", "--pid", str(process.pid), "--seconds", "1"])
            found = candidates.look(options)
        finally:
            process.kill()
    assert chosen(found) == ["score"]
    score = named(found)["score"]
    assert score.often is score.dear is score.function.calls is None
    assert "was not counted" in score.why


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "name one program"),
        (["--pid", "1", "--", "python", "x.py"], "name one program"),
        (["--", "/nowhere/python"], "/nowhere/python cannot be started: No such file or directory"),
        (["--", "/bin/true"], "/bin/true starts no Python that runs its sitecustomize"),
        (["--", sys.executable, "-c", "raise SystemExit(3)"], "ended with exit status 3"),
        (["--", sys.executable, "-c", "pass"], "ended before py-spy had seen it: let it do more"),
        (["--after", "0.5", "--", sys.executable, "-c", "pass"], "ended within 0.5 s: name a shorter --after"),
        (["--json", f"{__file__}/found.json", "--", sys.executable], "/test_profiles_candidates.py cannot be made"),
        (["--json", str(PLANTED), "--", sys.executable], "planted cannot be written: it is a folder"),
    ],
)
def test_what_cannot_be_looked_at_is_one_sentence(
    options: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["candidates", *options]) == 1
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("profiles: ")]
    assert len(said) == 1 and reason in said[0]


def test_what_is_no_python_is_said_to_be_none(can_sample: None, capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            assert main(["candidates", "--pid", str(process.pid), "--seconds", "1"]) == 1
        finally:
            process.kill()
    assert "it is no Python program" in capsys.readouterr().err


def test_calls_are_counted_exactly_in_every_thread(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import threading\n"
        "def called(): pass\n"
        "def work():\n"
        "    for _ in range(1000): called()\n"
        "threads = [threading.Thread(target=work) for _ in range(2)]\n"
        "for one in threads: one.start()\n"
        "for one in threads: one.join()\n"
        "work()\n"
    )
    run = Program([sys.executable, str(program)], 20, 0.0).count()
    assert run.ended and run.overhead > 0
    counted = {line: count for (file, line, name), count in run.calls.items() if file.endswith("program.py")}
    assert (counted[2], counted[3]) == (3000, 3)


def test_what_comes_before_is_not_counted(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import time\ndef early(): pass\ndef late(): pass\nearly(); late()\ntime.sleep(1.2)\nlate()\ntime.sleep(0.3)\n"
    )
    run = Program([sys.executable, str(program)], 20, 0.8).count()
    counted = {line: count for (file, line, name), count in run.calls.items() if file.endswith("program.py")}
    assert (counted[2], counted[3]) == (0, 1)
    assert run.seconds < 1.2


def test_a_program_keeps_its_own_sitecustomize_and_its_environment(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.customized = True\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import os, pathlib\n"
        "facts = [customized, os.environ.get('PYTHONPATH'), [name for name in os.environ if 'TRIRADIX_P' in name]]\n"
        f"pathlib.Path({str(tmp_path / 'facts')!r}).write_text(repr(facts))\n"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(tmp_path))
        Program([sys.executable, str(program)], 20, 0.0).time()
    assert (tmp_path / "facts").read_text() == repr([True, str(tmp_path), []])


def test_what_other_processes_take_is_told() -> None:
    busy = "import time; until = time.process_time() + 0.3\nwhile time.process_time() < until: pass"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    others = Program([sys.executable, "-c", start], 20, 0.0).time().others
    assert others > 0.2
    found = {"others": others, "seconds": 1.0, "samples": 1000, "held": 0.0, "answers": {}}
    said = candidates.sentences([], found)
    assert "Other processes that the program started took 0." in said[0]
    assert said[1].startswith("No candidate")
    assert len(candidates.sentences([], {**found, "others": 0.01})) == 1


def test_a_program_that_does_not_end_is_stopped() -> None:
    run = Program([sys.executable, "-c", "while True: pass"], 2, 0.0).time()
    assert not run.ended and run.seconds > 0


def test_calls_a_second_are_those_of_the_plain_run() -> None:
    function = ("a.py", 1, "f")
    plain = Run(2.0, 2.0, True, {}, 0.0)
    counted = Run(10.0, 10.0, True, {function: 1000}, 1e-3)
    assert calls_a_second(plain, counted) == ({function: 500.0}, 1.0)
    # By the clock: both runs take as long, and the counting took a half of the second one.
    by_clock = Run(2.0, 2.0, True, {function: 1000}, 1e-3)
    assert calls_a_second(plain, by_clock) == ({function: 1000.0}, 0.5)
    assert calls_a_second(plain, Run(2.0, 2.0, True, {function: 10}, 1e-3))[1] == 1
    assert calls_a_second(Run(2.0, 2.0, False, {}, 0.0), counted)[1] < 1


def test_the_workload_runs_in_one_process(own_implementation: str) -> None:
    program = PLANTED.parent.parent / "profiles" / "replayed.py"
    done = subprocess.run([sys.executable, program, own_implementation, "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_only_hands_on_is_none_but_a_loop_or_a_recursion_is() -> None:
    main, wrapper, work, loop = "main (p.py:1)", "wrapper (p.py:3)", "work (p.py:9)", "loop (p.py:20)"
    walk, visit = "walk (p.py:30)", "visit (p.py:40)"
    stacks = Counter(
        {
            (main, wrapper, work): 40,
            (main, wrapper): 2,
            (main, loop, work): 10,
            (main, walk, visit): 5,
            (main, walk, visit, walk, visit): 40,
        }
    )
    all_kinds = [sampler.Samples(kind, (), 100, 0, stacks, {}) for kind in ("gil", "cpu", "idle")]
    rates = {main: 1.0, wrapper: 5000.0, work: 5050.0, loop: 50.0, walk: 9000.0, visit: 9000.0}
    calls = {ranking.place(frame): rate for frame, rate in rates.items()}
    found = {one.name: one.callee for one in ranking.measured(*all_kinds, calls, 1.0)}
    assert found == {"main": "", "wrapper": "work", "work": "", "loop": "", "walk": "", "visit": ""}
    assert not any(one.callee for one in ranking.measured(*all_kinds, None, None))


def test_an_estimate_of_calls_has_two_digits() -> None:
    assert [candidates.calls_text(8_276.0, sure) for sure in (1, 0.7, 0.5)] == [
        "8,276",
        "~8,300",
        "4,100–8,300",
    ]
    assert [candidates.calls_text(calls, 0.7) for calls in (0.4, 3.26, 2.44e6)] == ["below 1", "~3", "~2.4 M"]


def test_crossings_have_the_digits_that_are_known() -> None:
    said = {crossings: candidates.crossings_text(crossings) for crossings in (0.04, 9.96, 124.0, 60_783_783.0, 2.2e9)}
    assert list(said.values()) == ["0.0", "10", "120", "61 M", "2.2 G"]


def test_crossing_into_rust_is_measured() -> None:
    assert 5e-9 < candidates.crossing() < 5e-6


def function(**changes: Any) -> ranking.Measured:
    usual = {
        "name": "f",
        "where": ("a.py", 1, "f"),
        "caller": "",
        "callee": "",
        "held": 0.5,
        "own": 0.4,
        "busy": 1.0,
        "wall": 0.5,
    }
    return ranking.Measured(**{**usual, "calls": 5000.0, "cost": 1e-4, **changes})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"held": 0.04}, "little to save"),
        ({"busy": 0.7}, "it waits 30% of its time"),
        ({"calls": 900.0, "own": 0.1}, "called rarely"),
        ({"calls": 900.0, "own": 0.4}, ""),  # a loop of its own
        ({"calls": 900.0, "own": 0.3}, "called rarely"),  # a loop over others
        ({"callee": "g"}, "that of g, once a call"),
        ({"cost": 200e-9, "calls": 2.5e6}, "less than 5 crossings"),
        ({"cost": 500e-9, "calls": 9.9e6}, "crossing would take back"),
        ({"calls": None, "cost": None}, ""),
        ({"calls": None, "cost": None, "own": 0.01}, "look at what it calls"),
    ],
)
def test_each_question_decides(changes: dict[str, Any], why: str) -> None:
    (verdict,) = ranking.rank([function(**changes)], BORDER, 0.0, {}, 1000)
    assert verdict.candidate is (not why)
    assert why in verdict.why


def test_the_bound_is_amdahls_less_the_crossings() -> None:
    (verdict,) = ranking.rank([function(calls=1e6, cost=5e-7)], BORDER, 0.0, {}, 1000)
    assert verdict.saving == pytest.approx(0.45)
    assert verdict.speedup == pytest.approx(1 / 0.55)
    assert verdict.speedup_text == "1.8×"


@pytest.mark.parametrize(
    ("held", "samples", "text"),
    [(0.05, 1000, "1.05×"), (0.5, 1000, "2.0×"), (0.95, 1000, "20×"), (0.98, 1000, "> 30×"), (1.0, 1000, "> 250×"),
     (1.0, 10, "> 2.5×"), (0.5, 40, "> 1.2×"), (0.0, 10, "> 1.00×")],
)  # fmt: skip
def test_a_bound_has_the_digits_that_its_samples_are_good_for(held: float, samples: int, text: str) -> None:
    (verdict,) = ranking.rank([function(held=held, calls=0.0)], BORDER, 0.0, {}, samples)
    assert verdict.speedup_text == text
    assert (verdict.speedup is None) == text.startswith(">")


def test_candidates_come_first_and_the_dearest_of_them_before() -> None:
    functions = [
        function(name=name, held=held, busy=busy)
        for name, held, busy in (("small", 0.2, 1.0), ("waits", 0.9, 0.1), ("large", 0.6, 1.0))
    ]
    assert [one.function.name for one in ranking.rank(functions, BORDER, 0.0, {}, 1000)] == ["large", "small", "waits"]


def test_shares_come_from_the_samples_and_a_recursion_counts_once() -> None:
    module, f, g = "<module> (p.py:1)", "f (p.py:3)", "g (p.py:9)"
    frozen = "_load (<frozen importlib._bootstrap>:5)"

    def samples(kind: str, **stacks: Any) -> sampler.Samples:
        return sampler.Samples(kind, (), 100, 0, Counter(stacks["stacks"]), {})

    gil = samples("gil", stacks={(module, f, f): 30, (module, f, g): 20, (frozen, module): 10})
    cpu = samples("cpu", stacks={(module, f, f): 40, (module, f, g): 20})
    idle = samples(
        "idle",
        stacks={
            (module, f, f): 40,
            (module, f, g): 20,
            (module, f, *GIL_WAIT): 20,
            (module, f, "poll (libc.so.6)"): 20,
        },
    )
    found = {one.name: one for one in ranking.measured(gil, cpu, idle, {("p.py", 3, "f"): 6000.0}, 0.6)}
    assert set(found) == {"<module>", "f", "g"}
    f_found = found["f"]
    assert (f_found.held, f_found.own, f_found.busy, f_found.wall) == (0.5, 0.3, 0.8, 1.0)
    assert f_found.cost == pytest.approx(1e-4)
    assert (f_found.caller, found["g"].caller, found["<module>"].caller) == ("<module>", "f", "")
    assert found["g"].calls == 0 and found["g"].cost is None
    assert ranking.waiting_for_gil(idle) == 0.2
