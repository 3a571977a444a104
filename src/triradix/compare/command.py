"""``triradix compare``: its arguments, and what it does with them."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from triradix.compare.row import FULL, QUICK
from triradix.compare.systems import SYSTEMS, System

WIDTH = 140

_NOTES = """\
The peers (SGLang 0.5.23 and NVIDIA Dynamo) live in an environment of their own, --peers FOLDER: it is made if it is not
there, which downloads about 2 GB and takes about 6 GB of disk. FOLDER/venv is a Python environment with torch, numpy,
msgspec, pyzmq, pydantic and ai-dynamo-runtime, FOLDER/sgl the unpacked wheel of SGLang; links to either will do.
Exit codes: 0 done, whatever the figures say; 1 ours answered differently, or failed; 2 the arguments cannot be used;
3 done, but without a peer that --systems names."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    names = ",".join(system.name for system in SYSTEMS)
    parser = commands.add_parser(
        "compare",
        help="measure the implementations beside SGLang's trees and NVIDIA Dynamo's",
        description="Measure the implementations beside SGLang's trees and NVIDIA Dynamo's, in turns in one run.",
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="smaller, fewer rounds: under 3 minutes, not 13")
    parser.add_argument("--rows", default="*", metavar="PATTERNS", help="such as 'hot*,evict' (default: all)")
    parser.add_argument("--systems", type=_systems, metavar="NAMES", help=f"of {names} (default: all)")
    parser.add_argument(
        "--peers",
        type=_folder,
        metavar="FOLDER",
        help="where the peers are, or none; made if named and not there (default: .peers, if it is there)",
    )
    parser.add_argument("--rounds", type=_rounds, metavar="N", help=f"(default: {FULL.rounds}, quick {QUICK.rounds})")
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="of the keys (default: 0)")
    parser.add_argument("--json", type=Path, default=Path("out/compare.json"), metavar="PATH", help="(%(default)s)")
    parser.add_argument("--html", type=Path, default=Path("out/compare.html"), metavar="PATH", help="(%(default)s)")


def _systems(text: str) -> tuple[System, ...]:
    known = {system.name: system for system in SYSTEMS}
    names = text.split(",")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"no system is called {name!r}; there are: {', '.join(known)}")
    return tuple(system for system in SYSTEMS if system.name in names)


def _folder(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("it names no folder")
    return text


def _rounds(text: str) -> int:
    return _number(text, 1, 10_000)


def _seed(text: str) -> int:
    return _number(text, 0, 2**62)


def _number(text: str, low: int, high: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer") from None
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"{text} is not one of {low} … {high}")
    return number


def compare(options: argparse.Namespace) -> int:
    from dataclasses import replace

    from triradix.compare.driver import run
    from triradix.compare.page import render_page
    from triradix.compare.peers import DEFAULT, find_or_make
    from triradix.compare.report import failed, make_report, write_json
    from triradix.compare.rows import choose, make_works
    from triradix.compare.table import print_table
    from triradix.console import Console
    from triradix.environments import EnvironmentMissing
    from triradix.files import make_room, put_all, sentence

    scale = QUICK if options.quick else FULL
    systems: tuple[System, ...] = options.systems or SYSTEMS
    if options.rounds is not None:
        scale = replace(scale, rounds=options.rounds, fresh_rounds=min(scale.fresh_rounds, options.rounds))
    try:
        works = choose(make_works(scale), options.rows.split(","))
    except ValueError as error:
        return _refuse(str(error))
    if options.json.resolve() == options.html.resolve():
        return _refuse(f"--json and --html both name {options.json}")
    for path in (options.json, options.html):
        # Now rather than after the run.
        try:
            make_room(path)
        except OSError as error:
            return _refuse(sentence(path, error))
    peers, reason = None, "not installed"
    if options.peers not in (None, "none") and not Path(options.peers).absolute().parent.is_dir():
        return _refuse(f"--peers {options.peers}: there is no folder {Path(options.peers).absolute().parent}")
    if options.peers not in (None, "none") and Path(options.peers).is_file():
        return _refuse(f"--peers {options.peers}: that is a file, not a folder")
    if any(not system.ours for system in systems):
        try:
            peers = find_or_make(options.peers)
        except EnvironmentMissing as error:
            reason = f"not installed: {error}"
            print(f"triradix compare: no peers: {error}", file=sys.stderr)
    if peers is None and not any(system.ours for system in systems):
        return _refuse("none of the systems can run")
    result = run(
        works,
        systems,
        scale,
        seed=options.seed,
        peers=peers,
        not_installed=reason,
        watch=lambda title, number, total: print(f"{number + 1}/{total} {title}", file=sys.stderr, flush=True),
    )
    for system in systems:
        # Of peers that are not installed the sentence above has told.
        if system.name in result.missing and (system.ours or peers is not None):
            print(f"triradix compare: {system.label} is left out: {result.missing[system.name]}", file=sys.stderr)
    if "floor" in result.missing:
        print(f"triradix compare: there is no floor: {result.missing['floor']}", file=sys.stderr)
    if not any(system.name in result.versions for system in systems):
        return _refuse("none of the systems can run")
    used = options.peers or (str(DEFAULT) if peers else "none")
    report = make_report(works, systems, scale, result, _command(options, used))
    # Before the table: what was measured is not to be lost with the reader of a pipe.
    unwritten = put_all({options.json: write_json(report), options.html: render_page(report)})
    # Narrower, the columns at the right would be cut off.
    print_table(report, Console(width=max(Console().width, WIDTH)))
    if unwritten:
        return _refuse(unwritten)
    print(f"{options.json} and {options.html} written")
    if any(failed(report)):
        return 1
    return 3 if options.systems and any(system.name in result.missing for system in systems) else 0


def _refuse(sentence: str) -> int:
    print(f"triradix compare: error: {sentence}", file=sys.stderr)
    return 2


def _command(options: argparse.Namespace, peers: str) -> str:
    """The command that does the same again."""
    words = ["triradix", "compare"] + (["--quick"] if options.quick else [])
    if options.rows != "*":
        words += ["--rows", options.rows]
    if options.systems:
        words += ["--systems", ",".join(system.name for system in options.systems)]
    if any(not system.ours for system in options.systems or SYSTEMS):
        words += ["--peers", peers]
    if options.rounds is not None:
        words += ["--rounds", str(options.rounds)]
    return shlex.join([*words, "--seed", str(options.seed)])
