"""What ``triradix.create`` accepts, checked once for all three implementations."""

from __future__ import annotations

from typing import NamedTuple

from triradix.arguments import as_int, shown

POLICIES = ("lru", "lfu", "fifo", "mru", "filo", "priority", "slru")


class Config(NamedTuple):
    """The checked arguments of a cache. Integers are exact ``int``, however large."""

    page_size: int
    eviction_policy: str
    bigram: bool
    slru_threshold: int
    enable_kv_cache_events: bool


def check_config(
    page_size: object,
    eviction_policy: object,
    bigram: object,
    slru_threshold: object,
    enable_kv_cache_events: object,
) -> Config:
    """Return the arguments as a `Config`. TypeError: a wrong type. ValueError: a wrong value; it says what is right."""
    if not isinstance(eviction_policy, str):
        raise TypeError(f"eviction_policy must be a str, not {type(eviction_policy).__name__}")
    policy = str.__str__(eviction_policy)  # a plain str, whatever a subclass says
    if policy not in POLICIES:
        raise ValueError(f"unknown eviction_policy {policy!r}; allowed: {', '.join(POLICIES)}")
    return Config(
        _at_least_one(page_size, "page_size"),
        policy,
        _flag(bigram, "bigram"),
        _at_least_one(slru_threshold, "slru_threshold"),
        _flag(enable_kv_cache_events, "enable_kv_cache_events"),
    )


def _at_least_one(value: object, name: str) -> int:
    number = as_int(value, name)
    if number < 1:
        raise ValueError(f"{name} is {shown(number)}; allowed: 1 and more")
    return number


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
    return value
