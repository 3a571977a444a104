"""The tables of docs/COMPARISON.md: what each of the three trees is to write, to build and to ship, and how fast it is.

    python -m asv_benchmarks.sizes                                   counts and builds, and prints the table
    python -m asv_benchmarks.sizes --compare out/compare.json        the figures of that comparison as well
    python -m asv_benchmarks.sizes ... --page docs/COMPARISON.md     puts each table between its markers in that page

A page takes whole comparisons only: of every row, in full size, with every system that its table has.

Builds run in a copy of the sources in a temporary folder, with the compilers of this environment and nothing built yet
(crates must have been downloaded: that is not timed), then once more after an edit of one file.

Exit codes: 0 done; 1 a table cannot be made or written, and then the page is as it was; 130 ended by Ctrl-C, 143 by
SIGTERM; 141 the reader of a pipe has gone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, String, Text

from asv_benchmarks.console import ending, open_missing_streams
from triradix import IMPLEMENTATIONS
from triradix.files import make_room, put, sentence
from triradix.processes import orderly_end

ROOT = Path(__file__).resolve().parents[1]
MARKERS = re.compile(r"(<!-- table: (?P<name>[^\n]*?) -->\n).*?(<!-- end of table -->)", re.DOTALL)
SILENT = (Comment, String.Doc, Text)
"""Kinds of tokens that make no line of code: comments, docstrings, blanks."""


@dataclass(frozen=True)
class Part:
    """One of the three: its sources, by the language that colours them, and what it is in a wheel."""

    sources: tuple[tuple[str, str], ...]
    edited: str
    """What is touched before the second build; empty where nothing is built."""
    shipped: str


PARTS = {
    "reference": Part((("python", "reference/*.py"),), "", "triradix/reference/"),
    "cython": Part((("cython", "cython_impl/*.p[yx][xd]"),), "cython_impl/walk.pyx", "triradix/cython_impl/"),
    "rust": Part(
        (("rust", "rust_impl/src/*.rs"), ("rust", "rust_impl/src/core/*.rs"), ("rust", "rust_impl/src/binding/*.rs")),
        "rust_impl/src/core/walk.rs",
        "",
    ),
}


def code_lines(language: str, text: str) -> int:
    """Lines with more on them than comments, docstrings and blanks."""
    line, found = 1, set()
    for kind, value in get_lexer_by_name(language, stripnl=False, ensurenl=False).get_tokens(text):
        silent = any(kind in one for one in SILENT)
        for number, piece in enumerate(value.split("\n"), line):
            if piece.strip() and not silent:
                found.add(number)
        line += value.count("\n")
    return len(found)


def sources(part: Part, root: Path = ROOT) -> list[tuple[str, Path]]:
    return [(language, path) for language, pattern in part.sources for path in sorted(root.glob(pattern))]


@dataclass(frozen=True)
class Built:
    """Seconds of processor time from nothing and after an edit; bytes in the wheel, and once installed."""

    cold: float
    again: float
    packed: int
    installed: int


def tracked(root: Path) -> Iterable[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True).stdout.decode()
    return (Path(name) for name in listed.split("\0") if name and (root / name).is_file())


def build(part: Part, copy: Path, run: Callable[[Path, Path], None], into: Path) -> Built:
    seconds = []
    for _ in range(2 if part.edited else 1):
        shutil.rmtree(into, ignore_errors=True)
        began = _children()
        run(copy, into)
        seconds.append(_children() - began)
        if part.edited:
            os.utime(copy / part.edited)
    (wheel,) = into.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = [file for file in archive.infolist() if file.filename.startswith(part.shipped)]
    packed, installed = (sum(size) for size in zip(*((f.compress_size, f.file_size) for f in files), strict=True))
    return Built(seconds[0], seconds[-1], packed, installed)


def _children() -> float:
    """Processor time of the processes that were started and have ended: what others do meanwhile changes it little."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def pip_wheel(copy: Path, into: Path) -> None:
    _run(
        [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-build-isolation", "-w", str(into), "."],
        copy,
    )


def maturin_wheel(copy: Path, into: Path) -> None:
    maturin = str(Path(sys.executable).with_name("maturin"))
    _run([maturin, "build", "--quiet", "--release", "--locked", "--out", str(into)], copy / "rust_impl")


def _run(command: list[str], folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    subprocess.run(command, cwd=folder, check=True, env={**environment, "PYTHONWARNINGS": "ignore"})


def size_table() -> str:
    with tempfile.TemporaryDirectory() as folder:
        copy, into = Path(folder, "sources"), Path(folder, "wheels")
        for path in tracked(ROOT):
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, copy / path)
        built = {name: build(PARTS[name], copy, _WHEELS[name], into) for name in ("cython", "reference", "rust")}
    files = {name: sources(part) for name, part in PARTS.items()}
    texts = {name: [(language, path.read_text("utf-8")) for language, path in files[name]] for name in PARTS}

    def row(title: str, cell: Callable[[str], str]) -> list[str]:
        return [title, *(cell(name) for name in IMPLEMENTATIONS)]

    def seconds(name: str, taken: float) -> str:
        return f"{taken:.0f} s" if PARTS[name].edited else "none"

    return _markdown(
        [
            ["", *(_TITLES[name] for name in IMPLEMENTATIONS)],
            row("files", lambda name: f"{len(files[name])}"),
            row("lines of code", lambda name: f"{sum(code_lines(*text) for text in texts[name]):,}"),
            row(
                "lines, with comments and docstrings",
                lambda name: f"{sum(text.count(chr(10)) for _, text in texts[name]):,}",
            ),
            row("build from nothing, processor time", lambda name: seconds(name, built[name].cold)),
            row("build after an edit of one file", lambda name: seconds(name, built[name].again)),
            row("in the wheel", lambda name: f"{built[name].packed / 1024:,.0f} KiB"),
            row("installed", lambda name: f"{built[name].installed / 1024:,.0f} KiB"),
        ]
    )


_TITLES = {"reference": "Python", "cython": "Cython", "rust": "Rust"}
_WHEELS = {"reference": pip_wheel, "cython": pip_wheel, "rust": maturin_wheel}

# What the page argues with.
FIGURES = (
    "short-match", "short-insert", "short-evict", "hot-128", "hot-1k", "hot-8k", "hot-128k", "list-8k", "resumed-128k",
    "prompt-match", "prompt-insert", "chat-match", "chat-insert", "nested-match", "branched-match", "children-match",
    "lock", "unlock", "evict", "evict-growth", "batch-single", "batch-many", "threads-2", "waiting", "rss-token",
    "rss-leaf", "gc-pause", "turnover-rss", "reads-match",
)  # fmt: skip


PEER = "sglang-py"


def read_comparison(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON: {error}") from None


def lacking(report: dict[str, Any]) -> str:
    """What a page would lose with this comparison; empty if nothing."""
    if report["quick"]:
        return "it is of a quick run"
    rows = {row["name"]: row["cells"] for row in report["rows"]}
    if missing := [name for name in FIGURES if name not in rows]:
        return f"it lacks the rows {', '.join(missing)}"
    measured = {system for name in FIGURES for system, cell in rows[name].items() if cell.get("median") is not None}
    if missing := [system for system in (*IMPLEMENTATIONS, PEER) if system not in measured]:
        return f"it has no figure of {', '.join(missing)}"
    return ""


def figure_table(report: dict[str, Any]) -> str:
    lines = [["", *(_TITLES[name] for name in IMPLEMENTATIONS), "Cython ÷ Rust", "SGLang's Python"]]
    rows = {row["name"]: row for row in report["rows"]}
    for name in FIGURES:
        if name not in rows:
            continue
        row = rows[name]

        def amount(system: str, row: dict[str, Any] = row) -> str:
            median = row["cells"].get(system, {}).get("median")
            return "–" if median is None else f"{_number(median)} {row['unit']}"

        pair = [row["cells"].get(system, {}).get("median") for system in ("cython", "rust")]
        ratio = f"{pair[0] / pair[1]:.2f}" if all(pair) and row["unit"] != "×" else "–"
        lines.append([row["title"], *map(amount, IMPLEMENTATIONS), ratio, amount(PEER)])
    facts = report["machine"]
    where = f"{facts['cpu']}, {facts['cores']} cores, {facts['system']}, {facts['python']}"
    return (
        _markdown(lines)
        + f"\nMeasured {report['made'][:10]} at {report['commit']} with `{report['command']}`: {where}.\n"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _markdown(lines: list[list[str]]) -> str:
    lines = [lines[0], ["---", *("---:" for _ in lines[0][1:])], *lines[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def fill(page: str, tables: dict[str, str]) -> str:
    """The page with each table between its markers."""
    return MARKERS.sub(
        lambda match: f"{match[1]}\n{tables[match['name']]}\n{match[3]}" if match["name"] in tables else match[0], page
    )


def figures(path: Path, whole: bool) -> str:
    """The table of that comparison; ValueError if there is none, or if it is not ``whole``."""
    report = read_comparison(path)
    try:
        table = figure_table(report)
        lack = lacking(report) if whole else ""
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path} is no comparison ({what}): `make compare` makes one") from None
    if lack:
        raise ValueError(f"{path} is not for a page, {lack}: `make compare` makes a whole one")
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    open_missing_streams()
    with orderly_end():
        return ending("sizes", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="sizes", description="What each of the three trees takes to write, build, ship."
    )
    parser.add_argument("--compare", type=Path, metavar="JSON", help="what `make compare` wrote: its figures too")
    parser.add_argument("--only-figures", action="store_true", help="build nothing")
    parser.add_argument("--page", type=Path, help="the page whose tables are replaced; without it they are printed")
    options = parser.parse_args(arguments)
    wanted = {"figures": options.compare is not None, "sizes": not options.only_figures}
    if not any(wanted.values()):
        parser.error("--only-figures wants --compare")
    try:
        page = None if options.page is None else _page(options.page, [name for name in wanted if wanted[name]])
        tables = {}
        if wanted["figures"]:
            tables["figures"] = figures(options.compare, whole=page is not None)
        if wanted["sizes"]:
            tables["sizes"] = _sizes()
        if page is not None:
            _write(options.page, fill(page, tables))
    except ValueError as error:
        print(f"sizes: {error}", file=sys.stderr)
        return 1
    if page is None:
        print("\n".join(tables.values()))
    return 0


def _page(path: Path, wanted: Sequence[str]) -> str:
    """Looked at before anything is built."""
    try:
        text = path.read_text("utf-8")
        make_room(path)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is no page: {error}") from None
    places = {match["name"] for match in MARKERS.finditer(text)}
    if missing := sorted(set(wanted) - places):
        raise ValueError(f"{path}: the page has no place for {', '.join(missing)}")
    return text


def _sizes() -> str:
    try:
        return size_table()
    except subprocess.CalledProcessError as error:
        raise ValueError(f"a build failed: `{shlex.join(error.cmd)}`") from None
    except OSError as error:
        raise ValueError(f"nothing can be built: {error}") from None


def _write(path: Path, text: str) -> None:
    try:
        put(path, text)
    except OSError as error:
        raise ValueError(sentence(path, error)) from None


if __name__ == "__main__":
    sys.exit(main())
