"""Every form of a key and of values that is accepted, and every one that is refused.

What an implementation really read is seen in the events (`token_ids`) and in `path_indices`.
"""

from __future__ import annotations

import array
import collections
import ctypes
import re
import struct
import sys
import threading
from typing import Any

import numpy as np
import pytest
from forms import FORMS, OwnInt, OwnList, OwnTuple, cast
from implementations import Implementation

from triradix import PrefixKey

U32, I64_MIN, I64_MAX = 2**32 - 1, -(2**63), 2**63 - 1


def tokens_read(implementation: Implementation, key: Any) -> Any:
    """The tokens that the implementation understands ``key`` to be."""
    cache = implementation.create(enable_kv_cache_events=True)
    result = cache.insert(key, list(range(list.__len__(key) if isinstance(key, list) else _length(key))))
    cache.check()
    told = cache.take_events()
    read = told[0].token_ids if told else []
    assert cache.match_prefix(key).length == cache.peek_prefix(key) == result.length == len(read)
    assert cache.match_prefix_many([key]).lengths.tolist() == [len(read)]
    assert cache.peek_prefix_many([key]).tolist() == [len(read)]
    assert all(type(token) is int for token in read)
    return read


def _length(key: Any) -> int:
    return tuple.__len__(key) if isinstance(key, tuple) else len(key)


def values_read(implementation: Implementation, values: Any, count: int) -> Any:
    cache = implementation.create()
    return cache.path_indices(cache.insert(list(range(count)), values).node).tolist()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tokens", [[], [5], [3, 1, 2, 3, 0, 100]], ids=len)
def test_forms(implementation: Implementation, form: str, tokens: list[int]) -> None:
    assert tokens_read(implementation, FORMS[form](tokens)) == tokens
    assert values_read(implementation, FORMS[form](tokens), len(tokens)) == tokens


def big_endian(*tokens: int) -> Any:
    return (ctypes.c_uint32.__ctype_be__ * len(tokens))(*tokens)


# Written out, so that this test needs nobody else's reading of a form.
TOKENS_OF = [
    ([0, U32], [0, U32]),
    ((1, np.uint64(U32), np.int8(3)), [1, U32, 3]),
    ([OwnInt(41), 42], [41, 42]),
    (OwnList([1, 2]), [1, 2]),
    (OwnTuple((1, 2)), [1, 2]),
    (b"\x00\xff\x80", [0, 255, 128]),
    (bytearray(b"az"), [97, 122]),
    (memoryview(b"\x01\x02\x03\x04")[::-1], [4, 3, 2, 1]),
    (memoryview(b"\x01\x02\x03\x04")[::2], [1, 3]),
    (array.array("b", [0, 127]), [0, 127]),
    (array.array("H", [65535]), [65535]),
    (array.array("i", [2**31 - 1]), [2**31 - 1]),
    (array.array("I", [U32]), [U32]),
    (array.array("Q", [U32, 0]), [U32, 0]),
    (array.array("l", [7, 8]), [7, 8]),
    (np.array([1, 256], ">u2"), [1, 256]),
    (np.array([1, U32], ">i8"), [1, U32]),
    (np.array([1, U32], "<u8"), [1, U32]),
    (np.array([2**31, U32], ">u4"), [2**31, U32]),
    (np.array([[1, 2], [3, 4]], np.uint32)[:, 1], [2, 4]),
    (np.array([[1, 2], [3, 4]], np.int64).T[0], [1, 3]),
    (np.arange(10, dtype=np.int64)[8:2:-3], [8, 5]),
    (np.arange(10, dtype=np.uint32)[::-1], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
    (np.broadcast_to(np.uint32(7), (3,)), [7, 7, 7]),
    (np.frombuffer(b"\xff" + struct.pack("<2I", 5, U32), "<u4", offset=1), [5, U32]),
    (np.frombuffer(b"\xff" + struct.pack(">2q", 5, 6), ">i8", offset=1), [5, 6]),
    (np.array([(9, 1), (8, 2)], [("a", "<u4"), ("b", "<u2")])["b"], [1, 2]),
    (memoryview(struct.pack("=2q", 5, 6)).cast("q"), [5, 6]),
    (cast(np.array([5, 6], np.uint64), "N"), [5, 6]),
    (cast(np.array([5, 6], np.int64), "@n"), [5, 6]),
    ((ctypes.c_int16 * 2)(5, 6), [5, 6]),
    (big_endian(1, 2), [1, 2]),
    (PrefixKey([1, 2, 3])[:2], [1, 2]),
    (PrefixKey(b"ab").extended((1,)).extended(np.array([U32])), [97, 98, 1, U32]),
    ([], []),
    ((), []),
    (b"", []),
    (np.empty(0, np.int64), []),
    (PrefixKey([]), []),
]


@pytest.mark.parametrize("pair", TOKENS_OF, ids=lambda pair: repr(type(pair[0]).__name__))
def test_tokens_of_forms(implementation: Implementation, pair: tuple[Any, list[int]]) -> None:
    assert tokens_read(implementation, pair[0]) == pair[1]


VALUES_OF = [
    ([I64_MIN, -1, I64_MAX], [I64_MIN, -1, I64_MAX]),
    ((np.int64(-5), np.uint64(I64_MAX)), [-5, I64_MAX]),
    ([OwnInt(-41)], [-41]),
    (OwnList([-1, 2]), [-1, 2]),
    (array.array("b", [-128, 127]), [-128, 127]),
    (array.array("q", [I64_MIN, I64_MAX]), [I64_MIN, I64_MAX]),
    (array.array("Q", [I64_MAX]), [I64_MAX]),
    (np.array([-1, 1], ">i2"), [-1, 1]),
    (np.array([I64_MIN, 2**40], ">i8"), [I64_MIN, 2**40]),
    (np.array([U32], "<u4"), [U32]),
    (np.arange(6, dtype=np.int64)[::-2], [5, 3, 1]),
    (np.frombuffer(b"\xff" + struct.pack("<2q", -5, 6), "<i8", offset=1), [-5, 6]),
    (b"\xff", [255]),
    (PrefixKey([U32, 0]), [U32, 0]),
]


@pytest.mark.parametrize("pair", VALUES_OF, ids=lambda pair: repr(type(pair[0]).__name__))
def test_values_of_forms(implementation: Implementation, pair: tuple[Any, list[int]]) -> None:
    assert values_read(implementation, pair[0], len(pair[1])) == pair[1]


class OnlyIndex:
    def __index__(self) -> int:
        return 1


class Structure(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_int))


REFUSED_FORMS: dict[str, Any] = {
    "str": "ab",
    "empty str": "",
    "range": range(2),
    "set": {1, 2},
    "frozenset": frozenset((1, 2)),
    "dict": {1: 1, 2: 2},
    "deque": collections.deque((1, 2)),
    "bool": [1, True],
    "float": [1, 2.0],
    "nan": [float("nan"), 1],
    "complex": [1j, 1],
    "str inside": [1, "2"],
    "bytes inside": [b"1", 2],
    "None inside": [1, None],
    "list inside": [1, [2]],
    "only __index__": [OnlyIndex(), 1],
    "numpy bool": [np.True_, 1],
    "numpy float": [np.float64(1), 1],
    "numpy timedelta": [1, np.timedelta64(1, "s")],
    "numpy array inside": [np.array(1), 1],
    "bool array": np.array([True, False]),
    "empty bool array": np.empty(0, bool),
    "float16": np.array([1, 2], np.float16),
    "float32": np.array([1, 2], np.float32),
    "float64": np.array([1, 2], np.float64),
    "empty float64": np.empty(0, np.float64),
    "complex array": np.array([1, 2], np.complex128),
    "object array": np.array([1, 2], object),
    "structured": np.zeros(2, [("a", "<u4"), ("b", "<u4")]),
    "one field": np.zeros(2, [("a", "<u4")]),
    "bytes array": np.array([b"a", b"b"]),
    "str array": np.array(["a", "b"]),
    "datetime array": np.zeros(2, "datetime64[s]"),
    "two dimensions": np.zeros((2, 1), np.int64),
    "no rows": np.zeros((2, 0), np.int64),
    "array of floats": array.array("d", [1, 2]),
    "empty array of floats": array.array("f"),
    "array of characters": array.array("w" if sys.version_info >= (3, 13) else "u", "ab"),
    "char view": memoryview(b"ab").cast("c"),
    "bool view": memoryview(b"\0\1").cast("?"),
    "empty bool view": memoryview(b"").cast("?"),
    "two-dimensional view": memoryview(b"abcd").cast("B", (2, 2)),
    "ctypes bools": (ctypes.c_bool * 2)(True, False),
    "ctypes doubles": (ctypes.c_double * 2)(1, 2),
    "ctypes chars": (ctypes.c_char * 2)(b"a", b"b"),
    "ctypes structures": (Structure * 2)(),
    "ctypes two dimensions": ((ctypes.c_int * 2) * 2)(),
}
NO_LENGTH: dict[str, Any] = {
    "None": None,
    "int": 5,
    "a float": 1.5,
    "object": object(),
    "numpy scalar": np.int64(5),
    "no dimension": np.array(5),
    "iterator": iter([1, 2]),
    "generator": (i for i in (1, 2)),
    "type": list,
    "ctypes int": ctypes.c_int(5),
}


class Unchanged:
    """A cache whose every sign of life is known, to see that a call that raises leaves none."""

    def __init__(self, implementation: Implementation, **config: Any) -> None:
        cache = self.cache = implementation.create(enable_kv_cache_events=True, **config)
        size, bigram = cache.page_size, cache.bigram
        self.keys = [[token] * (size + bigram) for token in (1, 2, 3)]
        for key in self.keys:
            cache.insert(key, [10 * key[0]] * len(key))
        self.node = cache.match_prefix(self.keys[1]).node
        cache.take_events()
        self.stats = dict(cache.stats())

    def prove(self) -> None:
        cache, size = self.cache, self.cache.page_size
        cache.check()
        assert dict(cache.stats()) | {"memory_bytes": 0} == self.stats | {"memory_bytes": 0}
        assert cache.take_events() == []
        assert (cache.total_size(), cache.protected_size()) == (3 * size, 0)
        assert cache.evict(3 * size).indices[::size].tolist() == [10, 30, 20]


def every_call(cache: Any, key: Any, node: Any) -> list[Any]:
    return [
        lambda: cache.match_prefix(key),
        lambda: cache.peek_prefix(key),
        lambda: cache.match_prefix(key, start=node),
        lambda: cache.insert(key, [5, 6]),
        lambda: cache.insert(key, [5, 6], start=node),
        lambda: cache.match_prefix_many([[1], key]),
        lambda: cache.peek_prefix_many([[1], key]),
        lambda: cache.match_prefix_many((key,), [None]),
    ]


@pytest.mark.parametrize("form", [*REFUSED_FORMS, *NO_LENGTH])
def test_refused_keys(implementation: Implementation, form: str) -> None:
    one = Unchanged(implementation)
    key = {**REFUSED_FORMS, **NO_LENGTH}[form]
    for number, call in enumerate(every_call(one.cache, key, one.node)):
        with pytest.raises(TypeError) as caught:
            call()
        if number in (5, 6):
            assert str(caught.value).startswith("keys[1]: ")
    with pytest.raises(TypeError):
        PrefixKey(key)
    with pytest.raises(TypeError):
        PrefixKey([1]).extended(key)
    one.prove()


@pytest.mark.parametrize("form", [*REFUSED_FORMS, *NO_LENGTH])
def test_refused_values(implementation: Implementation, form: str) -> None:
    one = Unchanged(implementation)
    values = {**REFUSED_FORMS, **NO_LENGTH}[form]
    length = 0 if form in NO_LENGTH else len(values)
    with pytest.raises(TypeError):
        one.cache.insert([7] * length, values)
    if form in REFUSED_FORMS:
        with pytest.raises(ValueError):
            one.cache.insert([7] * (length + 1), values)
    one.prove()


OUT_OF_RANGE: dict[str, tuple[Any, int, int]] = {  # the key, the position and the value that the message must name
    "negative": ([1, -1], 1, -1),
    "first of two": ([1, 2, -3, 2**32], 2, -3),
    "2**32": ([2**32, 1], 0, 2**32),
    "2**64": ((7, 2**64), 1, 2**64),
    "2**80": ([7, 2**80], 1, 2**80),
    "-2**80": ([7, -(2**80)], 1, -(2**80)),
    "int subclass": ([1, OwnInt(-9)], 1, -9),
    "numpy scalar": ([1, np.int64(-9)], 1, -9),
    "numpy unsigned scalar": ([1, np.uint64(2**64 - 1)], 1, 2**64 - 1),
    "int8": (np.array([1, -128], np.int8), 1, -128),
    "int16 big-endian": (np.array([1, -2], ">i2"), 1, -2),
    "int32": (np.array([5, 6, -7, 8], np.int32), 2, -7),
    "int64": (np.array([5, 2**32], np.int64), 1, 2**32),
    "int64 minimum": (np.array([I64_MIN, 2**32], np.int64), 0, I64_MIN),
    "uint64": (np.array([5, 2**64 - 1], np.uint64), 1, 2**64 - 1),
    "uint64 big-endian": (np.array([5, 2**64 - 1], ">u8"), 1, 2**64 - 1),
    "strided": (np.array([1, -1, 2, -2, -7, 0], np.int64)[::2], 2, -7),
    "reversed": (np.array([-7, 2, 1], np.int64)[::-1], 2, -7),
    "array": (array.array("i", [1, -5]), 1, -5),
    "long": (array.array("q", [1] * 1000 + [-5]), 1000, -5),
    "list, long": ([1] * 1000 + [2**40], 1000, 2**40),
    "unaligned": (np.frombuffer(b"\xff" + struct.pack("<2q", 5, -6), "<i8", offset=1), 1, -6),
    "view": (memoryview(struct.pack("2b", 5, -6)).cast("b"), 1, -6),
    "ctypes": ((ctypes.c_int64 * 2)(5, 2**33), 1, 2**33),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
@pytest.mark.parametrize("page_size", [1, 64])
@pytest.mark.parametrize("bigram", [False, True])
def test_tokens_out_of_range(implementation: Implementation, name: str, page_size: int, bigram: bool) -> None:
    one = Unchanged(implementation, page_size=page_size, bigram=bigram)
    key, position, value = OUT_OF_RANGE[name]
    named = re.compile(rf"(?<![-\w]){position}\b.*(?<![-\w]){re.escape(str(value))}\b", re.DOTALL)
    calls = every_call(one.cache, key, one.node)
    for call in [*calls, lambda: PrefixKey(key), lambda: PrefixKey([1]).extended(key)]:
        with pytest.raises(ValueError) as caught:
            call()
        assert named.search(str(caught.value)), f"{caught.value} should name position {position} and value {value}"
    one.prove()


VALUES_OUT_OF_RANGE: dict[str, tuple[Any, int, int]] = {
    "2**63": ([1, 2**63], 1, 2**63),
    "-2**63-1": ((-(2**63) - 1, 0), 0, -(2**63) - 1),
    "2**80": ([1, 2**80], 1, 2**80),
    "uint64": (np.array([1, 2**63], np.uint64), 1, 2**63),
    "uint64 big-endian": (np.array([1, 2**64 - 1], ">u8"), 1, 2**64 - 1),
    "scalar": ([1, np.uint64(2**63)], 1, 2**63),
    "array": (array.array("Q", [1, 2**63]), 1, 2**63),
    "strided": (np.array([1, 0, 2**63, 0], np.uint64)[::2], 1, 2**63),
}


@pytest.mark.parametrize("name", VALUES_OUT_OF_RANGE)
def test_values_out_of_range(implementation: Implementation, name: str) -> None:
    one = Unchanged(implementation)
    values, position, value = VALUES_OUT_OF_RANGE[name]
    with pytest.raises(ValueError) as caught:
        one.cache.insert([7, 8], values)
    text = str(caught.value)
    assert re.search(rf"(?<![-\w]){position}\b.*(?<![-\w]){re.escape(str(value))}\b", text, re.DOTALL), text
    one.prove()


def test_whole_key_is_checked(implementation: Implementation) -> None:
    one = Unchanged(implementation, page_size=4)
    for key in ([9, -1], [1, 1, 1, 1, 2, 3, 2**32], [9, 9, 9, 9, 9, 9, 9, 9, -1]):
        for call in every_call(one.cache, key, one.node)[:3]:
            with pytest.raises(ValueError):
                call()
        with pytest.raises(ValueError):
            one.cache.insert(key, [0] * len(key))
    with pytest.raises(ValueError):
        one.cache.insert([9, 9, 9, 9, 9], [0, 0, 0, 0, 2**63])
    one.prove()


@pytest.mark.parametrize("form", ["bytearray", "array I", "array q", "array b", "numpy <u4", "numpy <i8", "numpy >i2"])
def test_buffers_are_neither_kept_nor_changed(implementation: Implementation, form: str) -> None:
    cache = implementation.create()
    tokens = [1, 2, 3, 4, 5]
    key, values = FORMS[form](tokens), FORMS[form](tokens)
    result = cache.insert(key, values)
    cache.match_prefix(key)
    cache.match_prefix_many([key, key])
    with pytest.raises(ValueError):
        cache.insert(key, values[:-1])
    with pytest.raises(TypeError):
        cache.match_prefix(key, 5)
    assert list(key) == list(values) == tokens
    for buffer in (key, values):
        if not isinstance(buffer, np.ndarray):
            buffer.append(7)  # BufferError while anybody still holds the buffer
        buffer[0] = 99
    assert cache.path_indices(result.node).tolist() == tokens
    assert cache.match_prefix(tokens).length == 5
    assert cache.match_prefix([99]).length == 0


def test_references_to_keys_are_given_back(implementation: Implementation) -> None:
    cache = implementation.create()
    key, values, wrong = [2**20, 2**21], np.array([1, 2]), [2**20, -1]
    before = [sys.getrefcount(thing) for thing in (key, values, wrong, key[0])]
    for _ in range(50):
        cache.insert(key, values)
        cache.match_prefix(key)
        cache.match_prefix_many([key, key])
        with pytest.raises(ValueError):
            cache.match_prefix_many([key, wrong])
    assert [sys.getrefcount(thing) for thing in (key, values, wrong, key[0])] == before


def test_lists_that_change_while_they_are_read(implementation: Implementation) -> None:
    """Another thread shortens and fills the list: any answer or error will do, but the cache stays sound."""
    cache = implementation.create()
    key = list(range(1000))
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            key.clear()
            key.extend(range(2**20, 2**20 + 1000))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            try:
                cache.insert(key, range_of(key))
                cache.match_prefix(key)
            except ValueError:
                pass
    finally:
        done.set()
        thread.join()
    cache.check()


def range_of(key: list[int]) -> list[int]:
    return list(range(len(key)))
