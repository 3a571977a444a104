"""``python -m profiles``: record, compare, report, candidates, gc.

Exit codes: 0 done; 1 it cannot be done here, and a sentence says why; 2 the command line is wrong; 130 ended by Ctrl-C;
141 the reader of a pipe has gone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from asv_benchmarks.console import ending, open_missing_streams
from profiles import candidates, pauses, record
from profiles.arguments import make_folder, make_room
from profiles.compare import compare, path_of
from profiles.report import CannotReport, report
from profiles.sampler import CannotRecord
from profiles.table import plain
from triradix.files import put


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m profiles", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)

    everything = commands.add_parser("all", help="record, then gc, then report")
    recording = commands.add_parser("record", help="record each implementation under the same load")
    collector = commands.add_parser("gc", help="pauses of Python's collector while a tree is full")
    for command in (everything, recording, collector):
        record.add_places(command)
    for command in (everything, recording):
        record.add_options(command)
    for command in (everything, collector):
        pauses.add_options(command)

    page = commands.add_parser("report", help="one page of what was recorded")
    page.add_argument("--out", type=Path, default=Path("out/profiles"), help="folder (default out/profiles)")

    two = commands.add_parser("compare", help="two recordings: what gained, what lost")
    two.add_argument("before", type=Path, help="any file of a recording")
    two.add_argument("after", type=Path)
    two.add_argument("--out", type=Path, help="the page (default: beside the second, BEFORE..AFTER.html)")

    candidates.add_options(commands.add_parser("candidates", help="which functions of a program would Rust pay for?"))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    open_missing_streams()
    return ending("profiles", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> int:
    options = parser().parse_args(arguments)
    try:
        if options.command in ("all", "record"):
            record.run(options)
        if options.command in ("all", "gc"):
            collect(options)
        if options.command in ("all", "report"):
            write_report(options.out)
        if options.command == "compare":
            write_comparison(options.before, options.after, options.out)
        if options.command == "candidates":
            candidates.run(options)
    except (CannotRecord, CannotReport) as reason:
        print(f"profiles: {reason}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"profiles: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def collect(options: argparse.Namespace) -> None:
    make_folder(options.out)
    print(f"the pauses of the collector, {options.nodes:,} nodes", file=sys.stderr)
    measured = pauses.measure_all(options.implementations, options.nodes, options.python)
    pauses.write(measured, options.out)
    shown = plain("Python's garbage collector", pauses.explained(measured), ("", *pauses.COLUMNS))
    for name, cells in pauses.lines(measured):
        shown.add_row(name, *cells)
    Console().print(shown)


def write_report(folder: Path) -> None:
    path = folder / "report.html"
    try:
        text = report(folder)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise CannotReport(f"what {folder} holds cannot be shown: {what}; `make profile` makes it anew") from None
    put(path, text)
    print(f"{path} shows everything")


def write_comparison(before: Path, after: Path, out: Path | None) -> None:
    page, picture, table = compare(before, after)
    path = out or path_of(after).with_name(f"{path_of(before).stem}..{path_of(after).stem}.html")
    make_room(path)
    put(path, page)
    put(path.with_suffix(".svg"), picture)
    Console().print(table)
    print(f"{path} shows both, and the difference")


if __name__ == "__main__":
    raise SystemExit(main())
