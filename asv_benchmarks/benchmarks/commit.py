"""What the measured commit has: what it lacks is skipped, what is merely broken fails.

A benchmark is often newer than the commit that it measures. `create` and `needs` raise NotImplementedError, asv's word
for a skip in ``setup``, where the commit itself predates a part, an option or a method. Its sources say so (in the file
that ``wheels.py`` wrote when it built the commit), or its contract does. Everything else is an error: a part that the
commit has and that cannot be imported was not built.
"""

import json
import sys
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import triradix

FILE = Path(sys.prefix) / "triradix-commit.json"
"""In asv's environments only. Elsewhere (``asv run --environment existing``, the tests) every part is expected."""


def create(implementation: str, **options: Any) -> triradix.PrefixCache:
    """An empty cache. NotImplementedError: the commit has no such part or option yet; ImportError: it is not built."""
    if FILE.exists():
        _skip_unless(implementation in json.loads(FILE.read_text())["parts"], f"part {implementation}")
    for option in options:
        _skip_unless(option in signature(triradix.create).parameters, f"option {option}")
    return triradix.create(implementation, **options)


def needs(method: str, *parameters: str) -> None:
    """Skip where the commit's contract (`triradix.PrefixCache`) has no such method, or not these parameters."""
    _skip_unless(hasattr(triradix.PrefixCache, method), f"method {method}")
    for parameter in parameters:
        found = signature(getattr(triradix.PrefixCache, method)).parameters
        _skip_unless(parameter in found, f"parameter {parameter} of {method}")


def needs_module(name: str) -> None:
    """Skip where the commit has no module of that name, or not the package that it would be in."""
    package, _, _ = name.rpartition(".")
    if package:
        needs_module(package)
    _skip_unless(find_spec(name) is not None, f"module {name}")


def _skip_unless(there: bool, what: str) -> None:
    if not there:
        raise NotImplementedError(f"this commit has no {what} yet")
