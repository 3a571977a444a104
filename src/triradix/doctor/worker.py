"""One implementation, examined in a process of its own, which `process` starts.

It writes a line of JSON after each part: whoever reads them knows how far it came.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import triradix
from triradix import log
from triradix.doctor.forks import fork_test
from triradix.doctor.latency import measure
from triradix.doctor.self_test import Fault, self_test
from triradix.implementations import MODULES
from triradix.processes import end_with_parent

BUILT = ("version", "profile", "compiler", "cpu", "abi")
"""What an implementation tells of how it was built."""


def main(arguments: list[str]) -> None:
    """``NAME SECONDS PARENT``, the last of which is the process that asks. Nothing goes on without it."""
    name, seconds, parent = arguments[0], float(arguments[1]), int(arguments[2])
    end_with_parent()
    if os.getppid() != parent:
        return
    # What others print goes to stderr; what somebody has printed before may lack the end of its line.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    channel.write("\n")

    def tell(part: str, **found: Any) -> None:
        print(json.dumps({"part": part, **found}), file=channel, flush=True)

    try:
        package = import_module(MODULES[name])
        triradix.create(name)
        shown = log.shown(name)
    except Exception as error:
        tell("import", fault=_sentence(error))
        return
    built, unknown = _built(package)
    tell("import", path=str(package.__file__), built=built, unknown=unknown, gil=_has_gil(), log=shown)
    log.configure("off")  # what is tried here is nobody's business
    create = partial(triradix.create, name)
    for part, test in (("self-test", self_test), ("fork", fork_test)):
        began = time.perf_counter()
        try:
            test(create)
        except Fault as fault:
            tell(part, fault=str(fault))
        else:
            tell(part, seconds=time.perf_counter() - began)
    if seconds:
        tell("latency", **asdict(measure(create, seconds)))


def _built(package: ModuleType) -> tuple[dict[str, str], str]:
    """What it tells of its build, and what is the matter if that is not all."""
    try:
        info = package.build_info()
        built = {key: str(info[key]) for key in BUILT if key in info}
    except Exception as error:
        return {}, _sentence(error)
    lacking = ", ".join(key for key in BUILT if key not in built)
    return built, f"its build_info() lacks {lacking}" if lacking else ""


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _has_gil() -> bool:
    """With that implementation loaded: a module that is not made for it switches it on again."""
    asked = getattr(sys, "_is_gil_enabled", None)
    return asked is None or bool(asked())
