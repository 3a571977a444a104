"""Every module imports by itself, with warnings as errors; no tree imports another, and `triradix` none of them.

A compiled tree of another version is refused.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from implementations import Implementation

import triradix

PACKAGES = {"reference": "triradix.reference", "cython": "triradix.cython_impl", "rust": "triradix.rust_impl"}

EVERY_MODULE = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
names = [package.__name__]
if hasattr(package, "__path__"):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if module.name.rpartition(".")[2] != "__main__":
            names.append(module.name)
for name in names:
    importlib.import_module(name)
print(*names, sep="\\n")
"""


def python(script: str, *arguments: str) -> str:
    # Warnings of others' modules are theirs: what is tested is loaded after NumPy.
    script = "import numpy\nimport warnings\nwarnings.simplefilter('error')\n" + script
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_shared_modules() -> None:
    assert "triradix.protocol" in python(EVERY_MODULE, "triradix").split()


def test_modules_of_the_tree(implementation: Implementation) -> None:
    package = PACKAGES.get(implementation.name) or implementation.cls.__module__
    assert package in python(EVERY_MODULE, package).split()


def test_a_tree_alone(implementation: Implementation) -> None:
    """Nothing is imported until it is asked for; then that one and no other."""
    if implementation.name not in PACKAGES:
        pytest.skip("only the trees of triradix are made by name")
    script = """
import sys, triradix
others = set(sys.argv[2:])
all_trees = ("triradix.reference", "triradix.cython_impl", "triradix.rust_impl")
trees = lambda: {name for name in sys.modules if name.startswith(all_trees)}
assert not trees(), trees()
cache = triradix.create(sys.argv[1])
cache.insert([1], [1]); cache.match_prefix_many([[1]]).indices; cache.check()
cache.pretty_print(sys.stderr); cache.evict(1)
assert trees() and not {name for name in trees() for other in others if name.startswith(other)}, trees()
"""
    name = implementation.name
    python(script, name, *(package for other, package in PACKAGES.items() if other != name))


def test_the_class_alone(implementation: Implementation) -> None:
    cls = implementation.cls
    script = "import importlib, sys; getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(page_size=2)"
    package = PACKAGES.get(implementation.name) or implementation.name.partition(":")[0]
    python(script, package, cls.__name__)


def test_names_are_those_of_the_protocol() -> None:
    assert set(PACKAGES) == set(triradix.IMPLEMENTATIONS)


def imported(script: str) -> str:
    """What the import says last."""
    done = subprocess.run([sys.executable, "-c", f"import sys, triradix\n{script}"], capture_output=True, text=True)
    return (done.stderr.strip().splitlines() or ["nothing"])[-1].partition("Error: ")[2]


@pytest.mark.parametrize("tree", ["cython", "rust"])
def test_a_compiled_tree_beside_another_version(tree: str) -> None:
    """The version is compiled in; what stands beside it is looked at before anything of it is used."""
    extra = "[rust]" if tree == "rust" else ""
    fix = f"pip install --force-reinstall 'triradix{extra}==9.9.9', or in a checkout: make build"
    for way in (f"triradix.create({tree!r})", f"import {PACKAGES[tree]}"):
        script = f"triradix.__version__ = '9.9.9'\n{way}"
        versions = f"the {tree} tree is of version {triradix.__version__} and triradix of 9.9.9"
        assert imported(script) == f"{versions}; they must be the same: {fix}"
        assert imported(way) == ""


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("build_info = lambda: {'version': '0.0.9'}", "the rust tree is of version 0.0.9 and triradix of "),
        ("", "the rust tree is of an unknown version and triradix of "),
        (
            f"build_info = lambda: {{'version': {triradix.__version__!r}}}",
            "the rust tree was built from other sources (cannot import name ",
        ),
    ],
)
def test_a_module_that_does_not_look_itself(module: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "_triradix_rust.py").write_text(module)
    answer = imported(f"sys.path.insert(0, {str(tmp_path)!r})\ntriradix.create('rust')")
    assert answer.startswith(said)
    assert answer.endswith(
        f"pip install --force-reinstall 'triradix[rust]=={triradix.__version__}', or in a checkout: make build"
    )
