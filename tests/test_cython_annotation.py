"""The hot path of the Cython tree is C: in `cython -a` every line of it is white, and nothing takes the GIL back.

Of the hot modules that holds for every function, elsewhere for every function and block that runs without the GIL.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "cython_impl"
HOT = (
    "births", "children", "compare", "heap", "insert", "locks", "marks", "merge", "node", "prefetch", "queue", "slab",
    "span", "split", "walk",
)  # fmt: skip
LINE = re.compile(r'<pre class="cython line score-(\d+)"[^>]*>[^<]*<span class="">(\d+)</span>:')
# What each test is to find.
PLANTED = """
cdef object twice(object number):
    return number + number


cdef void append() noexcept nogil:
    with gil: [1, 2].append(3)


cdef int same(int number) except -1 nogil:
    return number


cdef void unraisable(int number) noexcept nogil:
    same(number)


def wait(int number):
    with nogil:
        if number:
            raise ValueError
"""
HOLE = "    with gil: [1, 2].append(3)"


@dataclass(frozen=True)
class Block:
    """A function, or another statement with lines below it."""

    words: tuple[str, ...]  # up to its colon
    head: range  # its lines
    body: range

    @property
    def is_function(self) -> bool:
        return self.words[0] in ("cdef", "cpdef") and "(" in self.words and self.words[1] != "extern"

    @property
    def lines_without_gil(self) -> range:
        if "nogil" not in self.words:
            return range(0)
        if self.is_function:
            return range(self.head.start, self.body.stop)
        return self.body if self.words[0] == "with" else range(0)


def statements(path: Path) -> Iterator[list[tokenize.TokenInfo]]:
    """The tokens of each. Cython's are Python's."""
    tokens: list[tokenize.TokenInfo] = []
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.NEWLINE:
                yield tokens
                tokens = []
            elif token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING, tokenize.ERRORTOKEN):
                tokens.append(token)


def colon_of(tokens: Sequence[tokenize.TokenInfo]) -> int | None:
    """Where the block begins that a statement opens."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.string in "([{") - (token.string in ")]}")
        if token.string == ":" and depth == 0:
            return at
    return None


def blocks(path: Path) -> list[Block]:
    found = []
    every = [tokens for tokens in statements(path) if tokens]
    for at, tokens in enumerate(every):
        colon = colon_of(tokens)
        if colon is not None:
            inside = [tokens]
            for following in every[at + 1 :]:
                if following[0].start[1] <= tokens[0].start[1]:
                    break
                inside.append(following)
            head = range(tokens[0].start[0], tokens[colon].end[0] + 1)
            words = tuple(token.string for token in tokens[:colon])
            found.append(Block(words, head, range(head.stop, inside[-1][-1].end[0] + 1)))
    return found


def directives() -> dict[str, Any]:
    """Those that the modules are built with, from setup.py."""
    for node in ast.walk(ast.parse((ROOT / "setup.py").read_text())):
        if isinstance(node, ast.keyword) and node.arg == "compiler_directives":
            found: dict[str, Any] = ast.literal_eval(node.value)
            return found
    raise AssertionError("setup.py names no compiler directives")


def annotate(package: Path) -> None:
    """Write the page of each module beside its C."""
    flags = [part for name, value in directives().items() for part in ("-X", f"{name}={value}")]
    files = map(str, sorted(package.glob("*.pyx")))
    top = str(package.parents[1])
    subprocess.run([sys.executable, "-m", "cython", "-a", "-I", top, *flags, *files], check=True)


def is_class(block: Block) -> bool:
    return block.words[:2] == ("cdef", "class")


def show(declarations: Path) -> None:
    """Cython makes no page of a .pxd: write a module with its functions, at the same lines and under other names."""
    lines = declarations.read_text().splitlines()
    kept = [""] * len(lines)
    all_blocks = blocks(declarations)
    functions = [block for block in all_blocks if block.lines_without_gil and block.is_function]
    if not functions:
        return
    for tokens in statements(declarations):
        if "cimport" in (token.string for token in tokens):
            for line in range(tokens[0].start[0], tokens[-1].end[0] + 1):
                kept[line - 1] = lines[line - 1]
    for block in functions:
        name = block.words[block.words.index("(") - 1]
        owner = next((other.words[2] for other in all_blocks if is_class(other) and block.head.start in other.body), "")
        indent = " " * (len(lines[block.head.start - 1]) - len(lines[block.head.start - 1].lstrip()))
        for line in block.lines_without_gil:
            kept[line - 1] = lines[line - 1].removeprefix(indent)
            if line in block.head:
                head = re.sub(rf"\b{name}\(", f"{name}_shown(", kept[line - 1])
                kept[line - 1] = head.replace("(self", f"({owner} self")
    kept[0] = f"from triradix.cython_impl.{declarations.stem} cimport *"
    page_of(declarations).with_suffix(".pyx").write_text("\n".join(kept) + "\n")


def page_of(source: Path) -> Path:
    return source.with_name(f"{source.stem}{'_shown' if source.suffix == '.pxd' else ''}.html")


def yellow_lines(source: Path, everything: bool = False) -> list[str]:
    """The lines of functions that call into Python: of those without the GIL, or of all."""
    lines = source.read_text().splitlines()
    looked_at = set()
    for block in blocks(source):
        if everything and block.is_function:
            looked_at.update(block.head, block.body)
        looked_at.update(block.lines_without_gil)
    if not looked_at:
        return []
    scores = {int(line): int(score) for score, line in LINE.findall(page_of(source).read_text())}
    assert set(scores) == set(range(1, len(lines) + 1)), "the page does not show each line once"
    return [f"{source.name}: {lines[line - 1].strip()}" for line in sorted(looked_at) if scores[line]]


def breaches(source: Path) -> list[str]:
    """Where words say that the GIL is taken back, or may be: to look for an exception, or to raise it."""
    found = []
    for tokens in statements(source):
        if any(token.string == "gil" for token in tokens):
            found.append(f"{source.name}: {tokens[0].line.strip()}")
    for block in blocks(source):
        if block.is_function and block.lines_without_gil and "noexcept" not in block.words:
            found.append(f"{source.name}: {' '.join(block.words)}")
    return found


def planted(source: Path, function: str, line: str) -> Path:
    """The same under another name, with a hole before a line of a function."""
    head, name, body = source.read_text().partition(f" {function}(")
    before, at, rest = body.partition(f"\n{line}\n")
    assert name and at
    copy = source.with_stem(f"{source.stem}_planted")
    copy.write_text(f"{head}{name}{before}\n{HOLE}{at}{rest}")
    return copy


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All modules, those that show declarations and planted ones, each with its page."""
    made = tmp_path_factory.mktemp("annotation") / "triradix" / "cython_impl"
    made.mkdir(parents=True)
    for folder in (made.parent, made):
        (folder / "__init__.py").touch()
    for path in (*SOURCES.glob("*.pyx"), *SOURCES.glob("*.pxd")):
        shutil.copy2(path, made)
    (made / "planted.pyx").write_text(PLANTED)
    planted(made / "eviction.pyx", "finish_segment", "    if used_up:")
    planted(made / "tree.pxd", "whole_pages", "    return units if tree.page == 1 else units - units % tree.page")
    for path in sorted(made.glob("*.pxd")):
        show(path)
    annotate(made)
    return made


def sources(package: Path) -> list[Path]:
    return [package / path.name for path in sorted((*SOURCES.glob("*.pyx"), *SOURCES.glob("*.pxd")))]


def test_hot_path_is_white(package: Path) -> None:
    assert "planted.pyx: return number + number" in yellow_lines(package / "planted.pyx", everything=True)
    assert [line for module in HOT for line in yellow_lines(package / f"{module}.pyx", everything=True)] == []


def test_what_runs_without_the_gil_is_white(package: Path) -> None:
    found = yellow_lines(package / "planted.pyx")
    for line in (HOLE.strip(), "cdef void unraisable(int number) noexcept nogil:", "raise ValueError"):
        assert f"planted.pyx: {line}" in found
    assert "planted.pyx: return number + number" not in found
    for name in ("eviction_planted.pyx", "tree_planted.pxd"):
        assert f"{name}: {HOLE.strip()}" in yellow_lines(package / name)
    assert [line for path in sources(package) for line in yellow_lines(path)] == []


def test_nothing_takes_the_gil_back(package: Path) -> None:
    assert breaches(package / "planted.pyx") == [
        f"planted.pyx: {HOLE.strip()}",
        "planted.pyx: cdef int same ( int number ) except - 1 nogil",
    ]
    for name in ("eviction_planted.pyx", "tree_planted.pxd"):
        assert breaches(package / name) == [f"{name}: {HOLE.strip()}"]
    assert [line for path in sources(package) for line in breaches(path)] == []
    assert sum(bool(block.lines_without_gil) for path in sources(package) for block in blocks(path)) > 200
