"""Work done in processes of its own, forked from this one, so that it begins with what is here and leaves no trace."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from triradix.processes import end_with_parent

Go = Callable[[], None]
"""Called by a function of `side_by_side` when it is ready: returns when all are."""


def in_fork(function: Callable[[], Any]) -> Any:
    """The JSON-able result of ``function``, called in a forked process. RuntimeError if it raises or dies."""
    return side_by_side([lambda go: function()])[0]


def side_by_side(functions: Sequence[Callable[[Go], Any]]) -> list[Any]:
    """The results of the functions, each called in a forked process of its own, all at the same time."""
    ready_read, ready_write = os.pipe()
    go_read, go_write = os.pipe()
    results, children = [], []
    for function in functions:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            _serve(function, write, ready_write, go_read, (read, go_write))
        os.close(write)
        results.append(read)
        children.append(child)
    os.close(ready_write)
    ready = 0
    while ready < len(functions) and os.read(ready_read, 1):
        ready += 1
    os.write(go_write, b"." * len(functions))
    found = []
    for read, child in zip(results, children, strict=True):
        with os.fdopen(read) as source:
            found.append(json.loads(source.read() or '{"error": "a forked process died"}'))
        os.waitpid(child, 0)
    for end in (ready_read, go_read, go_write):
        os.close(end)
    for each in found:
        if "error" in each:
            raise RuntimeError(each["error"])
    return [each["result"] for each in found]


def _serve(function: Callable[[Go], Any], write: int, ready: int, go: int, others: tuple[int, int]) -> None:
    """The child's life; does not return."""
    code = 1
    end_with_parent()
    try:
        for end in others:
            os.close(end)

        def wait() -> None:
            os.write(ready, b".")
            os.read(go, 1)

        with os.fdopen(write, "w") as out:
            try:
                json.dump({"result": function(wait)}, out)
            except Exception as error:
                traceback.print_exc()
                json.dump({"error": f"{type(error).__name__}: {error}"}, out)
        code = 0
    finally:
        os._exit(code)
