"""The command line: ``triradix replay``, the main job (`triradix.replay`), ``compare`` and ``doctor`` (likewise).

Exit codes: 0 done; 1 a run failed, the implementations disagree, the doctor found something, or what is printed cannot
be written; 2 the arguments or the trace cannot be used; 130 ended by Ctrl-C, 143 by SIGTERM; 141 the reader of a pipe
has gone.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import triradix
from triradix.compare.command import add_parser, compare
from triradix.config import POLICIES
from triradix.doctor.command import add_parser as add_doctor
from triradix.doctor.command import doctor
from triradix.options import add_implementations
from triradix.processes import orderly_end

_REPLAY_NOTES = """\
The ideal hit rate of a Mooncake trace (every request alone, nothing evicted, prompts only) is what
  triradix replay --trace FILE --capacity unbounded --concurrency 1 --no-output-tokens --page-size 1
reports; the report also shows it, computed from the trace's ids, beside every other run."""


_UNWRITTEN = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(arguments: Sequence[str] | None = None) -> int:
    # Started without them; not every argparse can do that.
    sys.stdout, sys.stderr = sys.stdout or io.StringIO(), sys.stderr or io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What an encoding has no letter for shall not be the end.
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            return _main(arguments)
        finally:
            sys.stdout.flush()
    except OSError as error:
        # The commands themselves say what is the matter with a file. What is left is what print raises.
        if error.filename is not None or error.errno not in _UNWRITTEN:
            raise
        _give_up_stdout()
        if isinstance(error, BrokenPipeError):
            return 141
        print(f"triradix: what is printed cannot be written: {error.strerror}", file=sys.stderr)
        return 1


def _main(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        run = {"compare": compare, "doctor": doctor, "replay": _replay}[options.command]
        with orderly_end():
            return run(options)
    except KeyboardInterrupt:
        print(f"triradix {options.command}: stopped", file=sys.stderr)
        return 130


def _give_up_stdout() -> None:
    """Else Python tries once more at its end, and complains."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="triradix", description=(triradix.__doc__ or "").partition("\n")[0])
    parser.add_argument("--version", action="version", version=f"triradix {triradix.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    replay = commands.add_parser(
        "replay",
        help="run a request trace through each implementation and show what it cost",
        description="Run a request trace through each implementation, as an engine would, and show what it cost.",
        epilog=_REPLAY_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = replay.add_mutually_exclusive_group()
    source.add_argument("--trace", type=Path, metavar="PATH", help="JSON lines, plain or gzip: Mooncake or token_ids")
    source.add_argument(
        "--workload",
        choices=("chat", "agent", "shared-prompt", "rag", "mixed"),
        help="a built-in workload (default: mixed)",
    )
    replay.add_argument("--requests", type=_positive, metavar="N", help="only so many (default: all; workloads: 2000)")
    replay.add_argument("--seed", type=_count, default=0, metavar="N", help="of the workload (default: 0)")
    replay.add_argument(
        "--block-size", type=_positive, default=512, metavar="TOKENS", help="tokens for each hash id (default: 512)"
    )
    replay.add_argument(
        "--capacity",
        type=_capacity,
        metavar="TOKENS",
        help="slots of the pool; 0 or unbounded: no bound (default: 2**22 for traces, 2**18 for workloads)",
    )
    replay.add_argument("--page-size", type=_positive, default=1, metavar="TOKENS", help="(default: 1)")
    replay.add_argument("--policy", choices=POLICIES, default="lru", help="eviction policy (default: lru)")
    add_implementations(replay)
    replay.add_argument(
        "--chunk", type=_positive, default=4096, metavar="TOKENS", help="prefilled in a step (default: 4096)"
    )
    replay.add_argument(
        "--concurrency", type=_positive, default=8, metavar="N", help="requests in flight at a time (default: 8)"
    )
    replay.add_argument(
        "--output-tokens",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="cache the answers too, as engines do",
    )
    replay.add_argument("--no-output", action="store_false", dest="output_tokens", help=argparse.SUPPRESS)
    replay.add_argument(
        "--json", type=Path, default=Path("out/replay.json"), metavar="PATH", help="(default: %(default)s)"
    )
    replay.add_argument(
        "--html", type=Path, default=Path("out/replay.html"), metavar="PATH", help="(default: %(default)s)"
    )
    add_parser(commands)
    add_doctor(commands)
    return parser


def _replay(options: argparse.Namespace) -> int:
    # Imported here: `triradix --version` needs none of it.
    from triradix.console import Console
    from triradix.files import make_room, put_all, sentence
    from triradix.replay.page import render_page
    from triradix.replay.report import make_report, write_json
    from triradix.replay.runner import ReplayError, check_implementations, progress_display, run_all
    from triradix.replay.table import print_table
    from triradix.replay.traces import TraceError, read_trace
    from triradix.replay.worker import Settings
    from triradix.replay.workloads import make_workload

    settings = Settings(
        _effective_capacity(options),
        options.page_size,
        options.policy,
        options.chunk,
        options.concurrency,
        options.output_tokens,
    )
    if settings.capacity is not None and settings.capacity < settings.page_size:
        return _refuse(f"--capacity {settings.capacity} does not hold one page of {settings.page_size} tokens")
    try:
        check_implementations(options.implementations, settings)
        if options.trace:
            trace = read_trace(options.trace, options.requests, options.block_size)
        else:
            trace = make_workload(options.workload or "mixed", options.requests or 2000, options.seed)
        if options.json.resolve() == options.html.resolve():
            return _refuse(f"--json and --html both name {options.json}")
        for path in (options.json, options.html):
            # Now rather than after the replay.
            make_room(path)
    except (ImportError, TraceError) as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(sentence(path, error))

    try:
        with progress_display(options.implementations, len(trace.requests)) as watch:
            measured = run_all(trace, settings, options.implementations, watch)
    except ReplayError as error:
        print(f"triradix replay: {error}", file=sys.stderr)
        return 1
    report = make_report(trace, settings, measured, _command(options))
    # Before the table: what was measured is not to be lost with the reader of a pipe.
    unwritten = put_all({options.json: write_json(report), options.html: render_page(report)})
    print_table(report, Console())
    if unwritten:
        return _refuse(unwritten)
    print(f"{options.json} and {options.html} written")
    return 0


def _refuse(sentence: str) -> int:
    print(f"triradix replay: error: {sentence}", file=sys.stderr)
    return 2


def _effective_capacity(options: argparse.Namespace) -> int | None:
    """Whole pages, as the pool has them."""
    if options.capacity is None:
        tokens = 2**22 if options.trace else 2**18
    elif options.capacity == 0:
        return None
    else:
        tokens = options.capacity
    return tokens // options.page_size * options.page_size or tokens


def _command(options: argparse.Namespace) -> str:
    """The command that does the same again, with every default spelled out."""
    words = ["triradix", "replay"]
    if options.trace:
        words += ["--trace", str(options.trace), "--block-size", str(options.block_size)]
        if options.requests:
            words += ["--requests", str(options.requests)]
    else:
        words += ["--workload", options.workload or "mixed", "--requests", str(options.requests or 2000)]
        words += ["--seed", str(options.seed)]
    capacity = _effective_capacity(options)
    words += ["--capacity", "unbounded" if capacity is None else str(capacity)]
    words += ["--page-size", str(options.page_size), "--policy", options.policy]
    words += ["--implementations", ",".join(options.implementations)]
    words += ["--chunk", str(options.chunk), "--concurrency", str(options.concurrency)]
    words.append("--output-tokens" if options.output_tokens else "--no-output")
    return shlex.join(words)


def _positive(text: str) -> int:
    number = _count(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer") from None
    if not 0 <= number < 2**62:
        raise argparse.ArgumentTypeError(f"{text} is out of range: 0 to 2**62 - 1")
    return number


def _capacity(text: str) -> int:
    return 0 if text == "unbounded" else _count(text)
