"""The forms of a key, by name: each turns a list of tokens into an object that means the same key.

A form that cannot hold the tokens (bytes above 255, say) gives the plain list, so any form may be asked of any key.
"""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from triradix import PrefixKey


class OwnList(list):  # type: ignore[type-arg]
    """A subclass that lies about itself: what it stores counts."""

    def __iter__(self) -> Any:
        return iter(["nonsense"])

    def __len__(self) -> int:
        return 99

    def __getitem__(self, index: Any) -> Any:
        return "nonsense"


class OwnTuple(tuple):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter(["nonsense"])

    def __len__(self) -> int:
        return 99

    def __getitem__(self, index: Any) -> Any:
        return "nonsense"


class OwnInt(int):
    """Says that it is 7, whatever it is."""

    def __index__(self) -> int:
        return 7

    def __int__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7


def strided(tokens: Sequence[int], dtype: Any, step: int = 3) -> Any:
    wide = np.zeros(max(1, abs(step) * len(tokens)), dtype)
    view = wide[:: abs(step)][: len(tokens)]
    view[:] = tokens
    return view if step > 0 else view[::-1].copy()[::-1]


def unaligned(tokens: Sequence[int], dtype: Any) -> Any:
    numbers = np.array(tokens, dtype)
    raw = np.zeros(numbers.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(numbers.tobytes(), np.uint8)
    view = np.frombuffer(raw.data[1:], dtype) if len(tokens) else np.empty(0, dtype)
    return view


def read_only(tokens: Sequence[int], dtype: Any) -> Any:
    numbers = np.array(tokens, dtype)
    numbers.flags.writeable = False
    return numbers


def cast(numbers: Any, letter: Any) -> memoryview[Any]:
    return memoryview(numbers.tobytes()).cast(letter)


def ctypes_array(tokens: Sequence[int], kind: Any) -> Any:
    made = (kind * len(tokens))(*tokens)
    if list(made) != list(tokens):  # ctypes cuts off what does not fit
        raise OverflowError
    return made


_prepared: dict[tuple[int, ...], PrefixKey] = {}


def prepared(tokens: Sequence[int]) -> PrefixKey:
    """The same `PrefixKey` object for equal tokens, so that what an implementation remembers in it is used again."""
    if len(_prepared) > 400:
        _prepared.clear()
    return _prepared.setdefault(tuple(tokens), PrefixKey(list(tokens)))


FORMS: dict[str, Callable[[Sequence[int]], Any]] = {
    "list": list,
    "tuple": tuple,
    "list subclass": OwnList,
    "tuple subclass": OwnTuple,
    "int subclass": lambda tokens: [OwnInt(token) for token in tokens],
    "numpy scalars": lambda tokens: [np.int64(token) for token in tokens],
    "mixed scalars": lambda tokens: [np.uint32(t) if i % 2 else t for i, t in enumerate(tokens)],
    "memoryview": lambda tokens: memoryview(array.array("I", tokens)),
    "memoryview step": lambda tokens: memoryview(array.array("q", [t for x in tokens for t in (x, 0)]))[::2],
    "prefix key": prepared,
    "prefix key slice": lambda tokens: prepared([*tokens, 1, 2])[: len(tokens)],
    "prefix key extended": lambda tokens: prepared(tokens[:3]).extended(list(tokens[3:])),
    "numpy 8 strided": lambda tokens: strided(tokens, "<i8"),
    "numpy 4 strided": lambda tokens: strided(tokens, "<u4", 2),
    "numpy 4 reversed": lambda tokens: strided(tokens, "<u4", -1),
    "numpy 2 strided": lambda tokens: strided(tokens, ">u2"),
    "numpy 4 unaligned": lambda tokens: unaligned(tokens, "<u4"),
    "numpy 8 unaligned": lambda tokens: unaligned(tokens, "<i8"),
    "numpy 8 big unaligned": lambda tokens: unaligned(tokens, ">i8"),
    "numpy 4 read-only": lambda tokens: read_only(tokens, "<u4"),
    "numpy 8 read-only": lambda tokens: read_only(tokens, "<i8"),
    "bytes": bytes,
    "bytearray": bytearray,
    "bytes view": lambda tokens: memoryview(bytes(tokens)),
    "ctypes c_uint32": lambda tokens: ctypes_array(tokens, ctypes.c_uint32),
    "ctypes c_int64": lambda tokens: ctypes_array(tokens, ctypes.c_int64),
    "ctypes big-endian": lambda tokens: ctypes_array(tokens, ctypes.c_uint32.__ctype_be__),
    "ctypes c_uint8": lambda tokens: ctypes_array(tokens, ctypes.c_uint8),
    "memoryview cast n": lambda tokens: cast(np.array(tokens, np.int64), "n"),
    "memoryview cast N": lambda tokens: cast(np.array(tokens, np.uint64), "N"),
}
for _letter in "bBhHiIlLqQ":
    FORMS[f"array {_letter}"] = lambda tokens, letter=_letter: array.array(letter, tokens)  # type: ignore[misc]
for _order in "<>":
    for _kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
        FORMS[f"numpy {_order}{_kind}"] = lambda tokens, dtype=_order + _kind: np.array(tokens, dtype)  # type: ignore[misc]


def in_form(tokens: Sequence[int], form: str) -> Any:
    try:
        return FORMS[form](tokens)
    except (OverflowError, ValueError):
        return list(tokens)
