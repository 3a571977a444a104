"""Which functions of a Python program would be worth a rewrite in Rust?

python -m profiles candidates [OPTIONS] -- COMMAND      runs it five times: timed, sampled three times, counted
python -m profiles candidates [OPTIONS] --pid PID       looks at a running one; calls cannot be counted then
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import triradix
from profiles import ranking, sampler
from profiles.arguments import a_second, at_least_one, make_room, seconds
from profiles.program import Program, calls_a_second
from profiles.ranking import Verdict
from profiles.rows import time_text
from profiles.sampler import CannotRecord
from profiles.table import plain
from triradix.files import put

SHOWN = 12
SURE = 2 / 3
"""Of an estimate of calls: with less, the least that it may be is said too."""
FEW = 200
"""Samples of which a share of a tenth is known to a fifth, not better: fewer, and it is said."""
ELSEWHERE = 0.05
"""Of the time of a run, the processor time of other processes above which it is said that they were not looked at."""
SEEN = 0.02
"""Functions with a smaller share of the time, running or waiting, are not listed."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="a Python program")
    parser.add_argument("--pid", type=at_least_one, help="of a running program, instead of a command")
    parser.add_argument(
        "--seconds", type=at_least_one, default=20, help="after which a run is stopped, or a look ends (default 20)"
    )
    parser.add_argument(
        "--after", type=seconds, default=0.0, help="seconds from the start that are not sampled (default 0)"
    )
    parser.add_argument("--rate", type=a_second, default=50, help="samples a second (default 50)")
    parser.add_argument(
        "--better-algorithm", nargs="+", default=[], metavar="FUNCTION", help="could be solved by a better algorithm"
    )
    parser.add_argument(
        "--no-better-algorithm", nargs="+", default=[], metavar="FUNCTION", help="could not: you have looked"
    )
    parser.add_argument("--json", type=Path, help="write everything to this file")


def crossing() -> float:
    """Seconds that a call into Rust takes that does next to nothing there: a list of 8 numbers in, an object back.

    It is a look-up in an empty tree.
    """
    call, key = triradix.create("rust").match_prefix, list(range(8))
    turns = range(20_000)

    def called() -> float:
        began = time.perf_counter()
        for _ in turns:
            call(key)
        return time.perf_counter() - began

    def empty() -> float:
        began = time.perf_counter()
        for _ in turns:
            pass
        return time.perf_counter() - began

    return max(1e-9, (min(called() for _ in range(9)) - min(empty() for _ in range(9))) / len(turns))


def look(options: argparse.Namespace) -> dict[str, Any]:
    """The verdicts and what they rest on."""
    command = options.program[1:] if options.program[:1] == ["--"] else options.program
    if bool(command) == (options.pid is not None):
        raise CannotRecord("name one program: `candidates -- COMMAND`, or `candidates --pid PID`")
    sampler.find_py_spy()
    border = crossing()
    plain = counted = calls = processor = None
    sure = 1.0
    samples = {}
    if options.pid is not None:
        for kind in sampler.KINDS:
            say(f"process {options.pid}: {options.seconds} s, {kind}")
            samples[kind] = sampler.sample(options.pid, kind, options.rate, options.seconds, by_function=True)
    else:
        program = Program(command, options.seconds, options.after)
        say("timed")
        plain = program.time()
        for kind in sampler.KINDS:
            say(f"sampled: {kind}")
            samples[kind] = program.sample(kind, options.rate)
        say("calls counted")
        counted = program.count()
        calls, sure = calls_a_second(plain, counted)
        processor = plain.processor / plain.seconds
    answers = {**dict.fromkeys(options.better_algorithm, True), **dict.fromkeys(options.no_better_algorithm, False)}
    waiting = ranking.waiting_for_gil(samples["idle"])
    functions = ranking.measured(samples["gil"], samples["cpu"], samples["idle"], calls, processor)
    unknown = set(answers) - {one.name for one in functions}
    if unknown:
        raise CannotRecord(f"no function {sorted(unknown)[0]} was seen; the names are those of the table")
    return {
        "verdicts": ranking.rank(functions, border, waiting, answers, samples["gil"].intervals),
        "samples": samples["gil"].intervals,
        "answers": answers,
        "border": border,
        "waiting": waiting,
        "held": sum(samples["gil"].stacks.values()) / samples["gil"].intervals,
        "seconds": plain.seconds if plain else None,
        "others": plain.others if plain else 0.0,
        "counted_seconds": counted.seconds if counted else None,
        "sure": sure,
    }


def say(what: str) -> None:
    print(f"candidates: {what}", file=sys.stderr)


def run(options: argparse.Namespace) -> None:
    if options.json:
        make_room(options.json)  # now rather than after the runs
    found = look(options)
    verdicts: list[Verdict] = found["verdicts"]
    listed = [one for one in verdicts if max(one.function.held, one.function.wall) >= SEEN][:SHOWN]
    Console().print(table(listed, found))
    for sentence in sentences(listed, found):
        print(sentence)
    if options.json:
        facts = {**found, "verdicts": [{**asdict(one), "speedup": one.speedup} for one in verdicts]}
        put(options.json, json.dumps(facts, indent=2) + "\n")


def table(verdicts: Sequence[Verdict], found: dict[str, Any]) -> Table:
    caption = (
        f"GIL: the share of the time in which the function, or what it calls, holds it. A crossing into Rust takes "
        f"{time_text(found['border'])} here. Answers: called often, bound by processor or "
        "memory, others wait for the GIL. At most: the whole program would be so many times as fast (Amdahl); >: at "
        "least that, for too few samples lie outside the function to tell."
    )
    columns = ("", "function", "GIL", "calls/s", "a call", "crossings", "answers", "at most")
    shown = plain("Would a rewrite in Rust pay?", caption, columns, ("", "function"))
    for number, one in enumerate(verdicts, start=1):
        function = one.function
        shown.add_row(
            str(number),
            escape(function.name),
            f"{function.held:.0%}",
            "?" if function.calls is None else calls_text(function.calls, found["sure"]),
            "?" if function.cost is None else time_text(function.cost),
            "?" if function.cost is None else crossings_text(function.cost / found["border"]),
            " ".join({None: "?", True: "yes", False: "no"}[answer] for answer in (one.often, one.bound, one.holds_up)),
            one.speedup_text,
        )
    return shown


def crossings_text(crossings: float) -> str:
    """Two digits: a crossing is not known better."""
    rounded = float(f"{crossings:.2g}")
    for factor, unit in ((1e9, " G"), (1e6, " M")):
        if rounded >= factor:
            return f"{rounded / factor:,.{0 if rounded >= 10 * factor else 1}f}{unit}"
    return f"{rounded:,.{0 if rounded >= 10 else 1}f}"


def calls_text(calls: float, sure: float) -> str:
    """Of an estimate two digits, and a range where little of it is sure."""
    if calls < 1:
        return "below 1"
    if sure == 1:
        return _count(calls)
    least, most = (_count(float(f"{each:.2g}")) for each in (calls * sure, calls))
    return f"~{most}" if sure >= SURE else f"{least}–{most}"


def _count(calls: float) -> str:
    return f"{calls / 1e6:,.1f} M" if calls >= 1e6 else f"{calls:,.0f}"


def sentences(listed: Sequence[Verdict], found: dict[str, Any]) -> list[str]:
    """One for each function, and what follows from all of them."""
    said = [f"{number}. {_sentence(one, found)}" for number, one in enumerate(listed, start=1)]
    chosen = [one.function.name for one in listed if one.candidate]
    asked = [name for name in chosen if name not in found["answers"]]
    if found["samples"] < FEW:
        said.append(
            f"Only {found['samples']} samples were taken, so the shares are rough: let the program do more, or sample "
            "it more often (--rate)."
        )
    if found["others"] >= ELSEWHERE * (found["seconds"] or 1.0):
        said.append(
            f"Other processes that the program started took {found['others']:.1f} s of processor time: they were not "
            "looked at."
        )
    if not chosen:
        said.append(
            f"No candidate: the GIL was held {found['held']:.0%} of the time, and no function both holds it for long "
            "and costs enough a call for a rewrite in Rust to pay."
        )
    elif asked:
        said.append(
            "To be asked first, for nobody can measure it: is there an algorithm whose cost grows more slowly with its "
            f"input, for {', '.join(asked)}? Answer with --better-algorithm {asked[0]} or "
            f"--no-better-algorithm {asked[0]}."
        )
    return said


def _sentence(one: Verdict, found: dict[str, Any]) -> str:
    file, line, _ = one.function.where
    begin = f"{one.function.name} ({file}:{line}{f', from {one.function.caller}' if one.function.caller else ''}):"
    if not one.candidate:
        return f"{begin} no, {one.why}."
    said = f"{begin} candidate, {one.why}. At most {one.saving:.0%} of the time would be saved."
    if one.holds_up:
        said += f" It holds the GIL while {found['waiting']:.1f} threads wait for it, on average."
    return said
