"""How this tree was built: what `triradix doctor` shows of it."""

from __future__ import annotations

import platform
import sys

import triradix


def build_info() -> dict[str, str]:
    """``version``; ``profile``, release or debug; ``compiler``; ``cpu``, the loops chosen at the import; ``abi``.

    Plain Python is as fast as the interpreter that runs it, so it says how that was built.
    """
    debug = hasattr(sys, "gettotalrefcount")
    return {
        "version": triradix.__version__,
        "profile": "debug" if debug else "release",
        "compiler": f"none (the interpreter: {platform.python_compiler()})",
        "cpu": "as NumPy and the interpreter choose",
        "abi": "any",
    }
