"""One implementation, examined in a process of its own: ``python -m triradix.doctor.worker NAME SECONDS``.

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
from typing import Any

import triradix
from triradix import log
from triradix.doctor.forks import fork_test
from triradix.doctor.latency import measure
from triradix.doctor.self_test import Fault, self_test
from triradix.implementations import MODULES


def main(name: str, seconds: float) -> None:
    # What others print goes to stderr.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(part: str, **found: Any) -> None:
        print(json.dumps({"part": part, **found}), file=channel, flush=True)

    try:
        package = import_module(MODULES[name])
        triradix.create(name)
    except Exception as error:
        tell("import", fault=f"{type(error).__name__}: {error}")
        return
    tell("import", path=package.__file__, built=package.build_info(), gil=_has_gil(), log=log.shown(name))
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


def _has_gil() -> bool:
    """With that implementation loaded: a module that is not made for it switches it on again."""
    asked = getattr(sys, "_is_gil_enabled", None)
    return asked is None or bool(asked())


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
