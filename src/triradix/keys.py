"""From what the caller gave to tokens and slots, in plain Python: `PrefixKey`, and the key forms of the protocol.

The compiled implementations read the same forms in their own code and give the same errors.
"""

from __future__ import annotations

import marshal
import threading
from array import array
from functools import cache
from typing import Any, NoReturn, Union

import numpy as np
import numpy.typing as npt

from triradix.arguments import as_int, shown

TOKEN_MAX = 2**32 - 1
_INTEGER_FORMATS = "bBhHiIlLqQnN"
_BYTE_ORDERS = "@=<>!"
_UINT32, _INT64, _UINT64 = np.dtype(np.uint32), np.dtype(np.int64), np.dtype(np.uint64)
_MANY = 256
_MARSHALLED = np.dtype([("kind", "u1"), ("number", "<u4")])
_MARSHAL_HEAD = 5
"""The kind of a list or tuple, and its length."""

Tokens = npt.NDArray[np.uint32]
Slots = npt.NDArray[np.int64]
Key = Union["PrefixKey", list[Any], tuple[Any, ...], bytes, bytearray, memoryview, "array[Any]", npt.NDArray[Any]]
"""The forms of a key (docs/FINE_PRINT.md). Other one-dimensional integer buffers work too."""


class PrefixKey:
    """Tokens prepared once and used many times: by a request that waits in a queue and is matched at every step.

    Immutable. Works with every cache, implementation, page size and thread. ``len()``, ``==`` and ``hash()`` are those
    of its tokens; ``key[:n]`` takes O(1) and ``key.extended(tokens)`` amortised O(new) (both share the tokens of the
    key that they come from). Raises what a key of that form raises anywhere: TypeError for a wrong form, ValueError for
    a token outside 0 … 2³²−1.

    ``memo`` is for implementations: each may remember there, under its own name, what it computed for this key or
    where it last found it. What it remembers never changes a result. ``origin`` is the memo of the key that this one
    was cut or extended from, and how many tokens both begin with (None: from no other key).
    """

    __slots__ = ("_storage", "_tokens", "memo", "origin")

    _storage: _Storage
    _tokens: Tokens
    memo: dict[str, object]
    origin: tuple[dict[str, object], int] | None

    # In __new__, so that nobody can begin anew with a key that exists.
    def __new__(cls, tokens: Key) -> PrefixKey:
        converted = as_tokens(tokens)
        storage = _Storage(len(converted))
        storage.append(0, converted)
        return cls._over(storage, len(converted), None)

    @classmethod
    def _over(cls, storage: _Storage, length: int, origin: tuple[dict[str, object], int] | None) -> PrefixKey:
        key = object.__new__(cls)
        key._storage, key._tokens, key.memo, key.origin = storage, storage.shown[:length], {}, origin
        return key

    @property
    def tokens(self) -> Tokens:
        """The tokens: read-only uint32, contiguous, shape ``(len(self),)``. O(1)."""
        return self._tokens

    def extended(self, tokens: Key) -> PrefixKey:
        """This key followed by ``tokens`` (any form of a key), in amortised O(new)."""
        new = as_tokens(tokens)
        storage, length = self._storage, len(self._tokens)
        if not storage.append(length, new):
            storage = _Storage(2 * (length + len(new)))
            storage.append(0, np.concatenate((self._tokens, new)))
        return self._over(storage, length + len(new), (self.memo, length))

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index: slice) -> PrefixKey:
        if not isinstance(index, slice):
            raise TypeError(f"a PrefixKey takes a slice [:n], not {type(index).__name__}; for its tokens see .tokens")
        start, stop, step = index.indices(len(self))
        if start != 0 or step != 1:
            raise ValueError("a slice of a PrefixKey must be a prefix: key[:n]")
        return self._over(self._storage, stop, (self.memo, stop))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrefixKey):
            return NotImplemented
        return self is other or np.array_equal(self._tokens, other._tokens)

    def __hash__(self) -> int:
        return hash(self._tokens.tobytes())

    def __copy__(self) -> PrefixKey:
        return self

    def __deepcopy__(self, memo: object) -> PrefixKey:
        return self

    def __reduce__(self) -> tuple[type[PrefixKey], tuple[Tokens]]:
        return (PrefixKey, (self._tokens.copy(),))

    def __repr__(self) -> str:
        head = ", ".join(map(str, self._tokens[:8].tolist()))
        return f"PrefixKey([{head}{', …' if len(self) > 8 else ''}], length={len(self)})"


class _Storage:
    """Tokens that several keys share: each sees a prefix of them. Only the key that ends where they end may append."""

    __slots__ = ("_lock", "_used", "shown", "tokens")

    def __init__(self, capacity: int) -> None:
        self.tokens: Tokens = np.empty(capacity, np.uint32)
        self.shown: Tokens = np.asarray(self.tokens.data.toreadonly())
        """The same memory; no view of it can be made writable."""
        self._used = 0
        self._lock = threading.Lock()

    def append(self, at: int, new: Tokens) -> bool:
        """Put ``new`` behind the first ``at`` tokens; False if others stand there already, or there is no room.

        False also while somebody else appends. Nobody waits: it might be this thread itself, further out, or one that a
        fork left behind.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if at != self._used or at + len(new) > len(self.tokens):
                return False
            self.tokens[at : at + len(new)] = new
            self._used += len(new)
            return True
        finally:
            self._lock.release()


def as_tokens(key: object) -> Tokens:
    """The tokens of a key, uint32 and contiguous. Not a copy where the key is already so: do not write to it."""
    if isinstance(key, PrefixKey):
        return key.tokens
    if isinstance(key, (list, tuple)):
        tokens = _marshalled(key) if len(key) >= _MANY else None
        if tokens is not None:
            return tokens
        items = _plain(stored_items(key), "token")
        try:
            return np.frombuffer(array("I", items), np.uint32) if items else np.empty(0, np.uint32)
        except OverflowError:
            _refuse_outside(items, "token", 0, TOKEN_MAX)
    return _from_buffer(key, "key", "token", 0, TOKEN_MAX, _UINT32)


def as_slots(values: object) -> Slots:
    """The slots that ``values`` holds, int64 and contiguous. Not a copy where they are already so."""
    if isinstance(values, PrefixKey):
        return values.tokens.astype(np.int64)
    if isinstance(values, (list, tuple)):
        items = stored_items(values)
        items = _plain(items, "value")
        try:
            return np.frombuffer(array("q", items), np.int64) if items else np.empty(0, np.int64)
        except OverflowError:
            _refuse_outside(items, "value", -(2**63), 2**63 - 1)
    return _from_buffer(values, "values", "value", -(2**63), 2**63 - 1, _INT64)


def stored_items(sequence: list[Any] | tuple[Any, ...]) -> list[Any] | tuple[Any, ...]:
    """The elements as stored, whatever a subclass says of them, and as they are now, whatever another thread does."""
    if isinstance(sequence, list):
        return list.copy(sequence)
    return tuple.__getitem__(sequence, slice(None))


def _marshalled(items: list[Any] | tuple[Any, ...]) -> Tokens | None:
    """Items that are all exact ints from 0 to 2³¹−1; None if others are among them, or may be.

    `marshal` writes such an int, and nothing else, as an "i" and four bytes. So one pass in C both tells the types and
    converts: two thirds of what a look at each type and an `array` take. (The first item that is of another kind stands
    at a multiple of five bytes, whatever comes after it. Of a subclass of list or tuple `marshal` writes nothing. No
    code of others runs, nor is the GIL given up, so the items stay as they are.)
    """
    try:
        written = marshal.dumps(items, 2)
    except ValueError:
        return None
    if len(written) != _MARSHAL_HEAD + len(items) * _MARSHALLED.itemsize:
        return None
    parts = np.frombuffer(written, _MARSHALLED, offset=_MARSHAL_HEAD)
    tokens = parts["number"].astype(np.uint32)
    # A negative one has become a large one.
    return tokens if (parts["kind"] == ord("i")).all() and tokens.item(tokens.argmax()) < 2**31 else None


def _plain(items: list[Any] | tuple[Any, ...], word: str) -> list[Any] | tuple[Any, ...]:
    """The elements as exact ints; TypeError names the first that is no integer."""
    kinds = list(map(type, items))
    if kinds.count(int) == len(kinds):  # an `is` for each: less than a set of them takes
        return items
    wrong = {kind for kind in set(kinds) if not _is_integer_type(kind)}
    if wrong:
        position = next(i for i, item in enumerate(items) if type(item) in wrong)
        raise TypeError(f"{word} {position} must be an integer, not {type(items[position]).__name__}")
    return [as_int(item, word) for item in items]


def _is_integer_type(kind: type) -> bool:
    if issubclass(kind, int):
        return kind is not bool
    return issubclass(kind, np.integer) and not issubclass(kind, np.timedelta64)


def _refuse_outside(items: list[Any] | tuple[Any, ...], word: str, low: int, high: int) -> NoReturn:
    """Some element does not fit: name the first one."""
    position = next(i for i, number in enumerate(items) if not low <= number <= high)
    raise ValueError(f"{word} {position} is {shown(items[position])}, outside {low} … {high}")


def _from_buffer(source: object, what: str, word: str, low: int, high: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    # The usual form of slots, which needs no second look.
    if type(source) is np.ndarray and source.dtype is dtype and source.ndim == 1:
        flags = source.flags
        if flags.c_contiguous and flags.aligned:
            return source
    if isinstance(source, str):
        raise TypeError(f"{what} must be a list, a tuple, an integer buffer or a PrefixKey, not str")
    try:
        view = memoryview(source)  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        raise TypeError(
            f"{what} must be a list, a tuple, an integer buffer or a PrefixKey, not {type(source).__name__}"
        ) from None
    if view.ndim != 1:
        raise TypeError(f"{what} must have one dimension, not {view.ndim}")
    stored = _dtype_of(view.format, view.itemsize)
    if stored is None:
        raise TypeError(f"{what} must hold integers, not a buffer of format {view.format!r}")
    if not view.nbytes:
        return np.empty(0, dtype)
    contiguous = view if view.c_contiguous else view.tobytes()
    if stored is _INT64 and low == 0:
        # The usual form of keys. Without their sign, negative numbers are larger than any that is allowed: one look.
        numbers = np.frombuffer(contiguous, _UINT64)
        if numbers.item(numbers.argmax()) <= high:
            return numbers.astype(dtype)
    numbers = np.frombuffer(contiguous, stored)
    if stored == dtype and numbers.flags.aligned:
        return numbers
    _check_range(numbers, word, low, high)
    return numbers.astype(dtype)


@cache
def _dtype_of(letter: str, itemsize: int) -> np.dtype[Any] | None:
    """What a buffer of this format holds; None if not integers. Asked for at every call, and made but once."""
    order = "@"
    if len(letter) == 2 and letter[0] in _BYTE_ORDERS:
        order, letter = letter[0], letter[1]
    if len(letter) != 1 or letter not in _INTEGER_FORMATS or itemsize not in (1, 2, 4, 8):
        return None
    sign = "i" if letter.islower() else "u"
    return np.dtype(f"{'>' if order in '>!' else '<' if order == '<' else '='}{sign}{itemsize}")


def _check_range(numbers: npt.NDArray[Any], word: str, low: int, high: int) -> None:
    # On a short key `argmin` and `argmax` take a sixth of the time of `min` and `max`, which are reductions of a ufunc.
    smallest, largest = numbers.item(numbers.argmin()), numbers.item(numbers.argmax())
    if smallest >= low and largest <= high:
        return
    wrong = np.zeros(len(numbers), bool)
    if smallest < low:
        wrong |= numbers < low
    if largest > high:
        wrong |= numbers > high
    position = int(wrong.argmax())
    raise ValueError(f"{word} {position} is {int(numbers[position])}, outside {low} … {high}")
