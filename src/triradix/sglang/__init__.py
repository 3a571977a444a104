"""SGLang's prefix cache on our trees: ``--radix-cache-backend triradix-rust`` (or ``-cython``, ``-reference``).

The entry point ``sglang.srt.plugins`` calls `register` in each of SGLang's processes. Nothing else of triradix imports
this package, and nothing heavy is imported before a backend is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import triradix

SUPPORTED = ("0.5.23",)
"""Versions of SGLang whose interface this package speaks. It changed in 0.5.21 and again in 0.5.22."""


def register() -> None:
    """Register a backend for each implementation. A name that is taken already is left as it is."""
    from sglang.srt.mem_cache.registry import register_radix_cache_backend, registered_radix_cache_backends

    taken = registered_radix_cache_backends()
    for implementation in triradix.IMPLEMENTATIONS:
        name = f"triradix-{implementation}"
        if name not in taken:
            register_radix_cache_backend(name, _factory(implementation))


def check_version() -> None:
    """RuntimeError if this SGLang is none of `SUPPORTED`: its calls would mean something else."""
    found = version("sglang")
    if found not in SUPPORTED:
        raise RuntimeError(
            f"triradix {triradix.__version__} works with SGLang {', '.join(SUPPORTED)}, and this is {found}: "
            "install one of these, or leave out --radix-cache-backend"
        )


def _factory(implementation: str) -> Callable[[Any], Any]:
    def build(context: Any) -> Any:
        check_version()
        from triradix.sglang.cache import TriradixCache
        from triradix.sglang.refusals import refuse

        refuse(context)
        return TriradixCache(context.params, implementation)

    return build
