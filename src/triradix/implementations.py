"""The implementations by name. None is imported before it is asked for, and none stands in for another."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from triradix.protocol import PrefixCache

IMPLEMENTATIONS = ("reference", "cython", "rust")
MODULES = {
    "reference": "triradix.reference",
    "cython": "triradix.cython_impl",
    "rust": "triradix.rust_impl",
}


def create(
    implementation: str,
    *,
    page_size: int = 1,
    eviction_policy: str = "lru",
    bigram: bool = False,
    slru_threshold: int = 2,
    enable_kv_cache_events: bool = False,
) -> PrefixCache:
    """Make an empty cache.

    ``implementation`` is one of `IMPLEMENTATIONS`. ``page_size``: units a page (1 and more). ``eviction_policy``: lru,
    lfu, fifo, mru, filo, priority or slru. ``bigram``: units are pairs of neighbouring tokens (EAGLE).
    ``slru_threshold``: hits from which a page is protected under slru. ``enable_kv_cache_events``: keep events for
    ``take_events()``.

    ValueError for an unknown implementation or policy and for numbers below 1 (it lists what is allowed); TypeError for
    wrong types; ImportError, with what to install or build, for an implementation that cannot be imported.
    """
    if not isinstance(implementation, str):
        raise TypeError(f"implementation must be a str, not {type(implementation).__name__}")
    name = str.__str__(implementation)  # a plain str, whatever a subclass says
    if name not in MODULES:
        raise ValueError(f"unknown implementation {name!r}; allowed: {', '.join(IMPLEMENTATIONS)}")
    cls = import_module(MODULES[name]).RadixCache
    cache = cls(
        page_size=page_size,
        eviction_policy=eviction_policy,
        bigram=bigram,
        slru_threshold=slru_threshold,
        enable_kv_cache_events=enable_kv_cache_events,
    )
    return cast(PrefixCache, cache)
