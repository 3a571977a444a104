"""Checks of the arguments that are not keys: numbers and namespaces.

Every function returns the plain value or raises what the protocol names, in the caller's words.
"""

from __future__ import annotations

import numpy as np

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Namespace = tuple[str | None, str | None]
"""(extra_key, cache_salt). Two requests share pages if and only if their pairs are equal."""

DEFAULT_NAMESPACE: Namespace = (None, None)


def as_int(value: object, name: str) -> int:
    """An int (subclasses by value) or a NumPy integer; a bool, a float and anything else is TypeError."""
    if type(value) is int:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__index__(value)
    if isinstance(value, np.integer) and not isinstance(value, np.timedelta64):
        return int(np.generic.item(value))  # as stored, whatever a subclass says of it
    raise TypeError(f"{name} must be an integer, not {type(value).__name__}")


def shown(number: int) -> str:
    """A number for a message: in decimal, or in hexadecimal where Python refuses to print so many digits."""
    try:
        return str(number)
    except ValueError:
        return hex(number)


def as_int64(value: object, name: str) -> int:
    """`as_int`, within int64; outside ValueError."""
    number = value if type(value) is int else as_int(value, name)
    if not INT64_MIN <= number <= INT64_MAX:
        raise ValueError(f"{name} is {shown(number)}, outside int64")
    return number


def as_count(value: object, name: str) -> int:
    """`as_int`, zero or more, however large; negative is ValueError."""
    number = value if type(value) is int else as_int(value, name)
    if number < 0:
        raise ValueError(f"{name} is {shown(number)}; it cannot be negative")
    return number


def as_threads(value: object) -> int | None:
    """The ``threads`` of a batch: None, or an integer of at least one."""
    if value is None:
        return None
    number = as_int(value, "threads")
    if number < 1:
        raise ValueError(f"threads is {shown(number)}; allowed: None, or 1 and more")
    return number


def as_namespace(extra_key: object) -> Namespace:
    """The pair that ``extra_key`` stands for: None is (None, None), a str ``s`` is (s, None)."""
    if extra_key is None:
        return DEFAULT_NAMESPACE
    if isinstance(extra_key, str):
        return (_part(extra_key), None)
    if isinstance(extra_key, tuple):
        parts = tuple.__getitem__(extra_key, slice(None))
        if len(parts) != 2:
            raise ValueError(f"extra_key is a tuple of {len(parts)}; it must be a pair (extra_key, cache_salt)")
        return (_part(parts[0]), _part(parts[1]))
    raise TypeError(f"extra_key must be None, a str or a pair of them, not {type(extra_key).__name__}")


def _part(part: object) -> str | None:
    if part is None:
        return None
    if not isinstance(part, str):
        raise TypeError(f"the parts of an extra_key must be None or str, not {type(part).__name__}")
    text = str.__str__(part)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"extra_key {text!r} has a character that UTF-8 cannot hold (a lone surrogate)") from None
    return text
