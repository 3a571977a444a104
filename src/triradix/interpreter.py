"""Refuses sub-interpreters in plain words: NumPy, which all of this stands on, can be loaded once in a process."""

from importlib import import_module
from types import ModuleType


def _interpreters() -> ModuleType | None:
    for name in ("_interpreters", "_xxsubinterpreters"):  # since Python 3.13, and before
        try:
            return import_module(name)
        except ImportError:
            continue
    return None  # another Python, which has none


_module = _interpreters()
if _module is not None and _module.get_current() != _module.get_main():
    raise ImportError(
        "triradix cannot be imported in a sub-interpreter: use it in the main interpreter of a process, "
        "from as many threads as you like"
    )
