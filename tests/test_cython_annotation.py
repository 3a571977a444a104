"""The hot path of the Cython tree is C: in `cython -a` every line of it is white, and nothing takes the GIL back."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "cython_impl"
HOT = (
    "births", "children", "compare", "heap", "insert", "locks", "marks", "merge", "node", "prefetch", "queue", "slab",
    "span", "split", "walk",
)  # fmt: skip
LINE = re.compile(r'<pre class="cython line score-(\d+)"[^>]*>[^<]*<span class="">(\d+)</span>:')
DEFINITION = re.compile(r"^ *cdef [^=]*?\)[^:=()]*:$", re.MULTILINE)


def directives() -> dict[str, Any]:
    """Those that the modules are built with, from setup.py."""
    for node in ast.walk(ast.parse((ROOT / "setup.py").read_text())):
        if isinstance(node, ast.keyword) and node.arg == "compiler_directives":
            found: dict[str, Any] = ast.literal_eval(node.value)
            return found
    raise AssertionError("setup.py names no compiler directives")


def annotated(top: Path) -> Path:
    """The hot modules, and one with a line to be found, each with the page that Cython writes beside its C."""
    package = top / "triradix" / "cython_impl"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    for path in SOURCES.glob("*.pxd"):
        shutil.copy2(path, package)
    for module in HOT:
        shutil.copy2(SOURCES / f"{module}.pyx", package)
    (package / "planted.pyx").write_text("cdef object twice(object number):\n    return number + number\n\n\nX = 1\n")
    flags = [part for name, value in directives().items() for part in ("-X", f"{name}={value}")]
    files = map(str, sorted(package.glob("*.pyx")))
    subprocess.run([sys.executable, "-m", "cython", "-a", "-I", str(top), *flags, *files], check=True)
    return package


def yellow_lines(source: Path) -> list[str]:
    """The lines of functions that call into Python."""
    scores = {int(line): int(score) for score, line in LINE.findall(source.with_suffix(".html").read_text())}
    lines = source.read_text().splitlines()
    assert set(scores) == set(range(1, len(lines) + 1)), "the page does not show each line once"
    in_function = False
    yellow = []
    for number, line in enumerate(lines, 1):
        if line.startswith("cdef ") and "(" in line and "=" not in line.partition("(")[0]:
            in_function = True
        elif line and not line[0].isspace() and line[0] != ")":
            in_function = False
        if in_function and scores[number]:
            yellow.append(f"{source.name}:{number}: {line.strip()}")
    return yellow


def test_hot_path_is_white(tmp_path: Path) -> None:
    package = annotated(tmp_path)
    assert yellow_lines(package / "planted.pyx")[-1] == "planted.pyx:2: return number + number"
    assert [line for module in HOT for line in yellow_lines(package / f"{module}.pyx")] == []


def test_nothing_without_the_gil_can_raise() -> None:
    """A nogil function that may raise takes the GIL to look for an exception, or to raise it."""
    seen = 0
    for path in [*SOURCES.glob("*.pyx"), *SOURCES.glob("*.pxd")]:
        for definition in DEFINITION.findall(path.read_text()):
            if "nogil" in definition:
                seen += 1
                assert "noexcept nogil" in definition, f"{path.name}: {definition}"
            assert "with gil" not in definition, f"{path.name}: {definition}"
    assert seen > 50
