"""Reading request traces: JSON lines, plain or gzip, in one of two formats.

*Mooncake* (the traces published with the paper of FAST '25): ``timestamp``, ``input_length``, ``output_length`` and
``hash_ids``, one id for each block of 512 input tokens, the last of which may be partial. Equal ids are equal blocks.

*Tokens*: ``token_ids``, and optionally ``output_length``, ``timestamp`` and ``extra_key`` (null, a string, or a pair of
them).

The first record decides. The file gives the order of the requests; a timestamp must be a number, and is not used. The
output tokens are not in either format: they follow from the prompt, so that equal prompts have equal answers.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from triradix.arguments import as_namespace
from triradix.keys import as_tokens
from triradix.replay.requests import Request, Segments, Trace

LONGEST = 2**24
"""Tokens: a longer prompt or output is taken for a mistake in the file."""


class TraceError(ValueError):
    """The trace cannot be used; the message is one sentence that names the file and, if there is one, the line."""


def read_trace(path: Path, limit: int | None = None, block_size: int = 512) -> Trace:
    """The first ``limit`` requests of the file (None: all)."""
    requests: list[Request] = []
    parse: Callable[[dict[str, Any], int], Request] | None = None
    for number, record in _records(path):
        try:
            parse = parse or _format_of(record)
            requests.append(parse(record, block_size))
        except _BadRecord as problem:
            raise TraceError(f"{path}, line {number}: {problem}") from None
        if len(requests) == limit:
            break
    if not requests:
        raise TraceError(f"{path} holds no request")
    return Trace(path.name, requests, block_size if parse is _mooncake else None)


class _BadRecord(Exception):
    pass


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of the file with the numbers of their lines; blank lines are passed over."""
    number = 0
    try:
        with path.open("rb") as file:
            zipped = file.peek(2)[:2] == b"\x1f\x8b"
            for number, line in enumerate(gzip.open(file) if zipped else file, 1):
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise TraceError(f"{path}, line {number}: not JSON ({error})") from None
                if not isinstance(record, dict):
                    kind = type(record).__name__
                    raise TraceError(f"{path}, line {number}: a JSON object is expected on each line, not {kind}")
                yield number, record
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(f"{path}, after line {number}: the gzip data is damaged ({error})") from None
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}") from None


def _format_of(record: dict[str, Any]) -> Callable[[dict[str, Any], int], Request]:
    if "hash_ids" in record:
        return _mooncake
    if "token_ids" in record:
        return _token_ids
    raise _BadRecord("neither hash_ids (with input_length and output_length) nor token_ids is there")


def _mooncake(record: dict[str, Any], block_size: int) -> Request:
    length = _count(record, "input_length", least=1)
    output_length = _count(record, "output_length")
    ids = _integers(record, "hash_ids", -(2**63), 2**63 - 1)
    _check_timestamp(record)
    blocks = -(-length // block_size)
    if len(ids) != blocks:
        raise _BadRecord(
            f"hash_ids has {len(ids)} ids, but input_length {length} makes {blocks} blocks of {block_size} "
            "(is --block-size right?)"
        )
    lengths = np.full(blocks, block_size, np.int64)
    lengths[-1] = length - (blocks - 1) * block_size
    prompt = Segments(np.array(ids, np.int64), lengths)
    return Request(prompt, _answer(zlib.crc32(prompt.ids.tobytes(), length), output_length))


def _token_ids(record: dict[str, Any], block_size: int) -> Request:
    tokens = as_tokens(_integers(record, "token_ids", 0, 2**32 - 1))
    if not len(tokens):
        raise _BadRecord("token_ids is empty")
    output_length = _count(record, "output_length") if "output_length" in record else 0
    if "timestamp" in record:
        _check_timestamp(record)
    extra_key = record.get("extra_key")
    try:
        namespace = as_namespace(tuple(extra_key) if isinstance(extra_key, list) else extra_key)
    except (TypeError, ValueError) as error:
        raise _BadRecord(str(error)) from None
    return Request(tokens, _answer(zlib.crc32(tokens.tobytes()), output_length), namespace)


def _answer(seed: int, length: int) -> Segments:
    # Ids of answers have their own range, so that none is the id of a block as traces number them.
    return Segments(np.array([seed - 2**48], np.int64), np.array([length], np.int64))


def _field(record: dict[str, Any], name: str) -> Any:
    if name not in record:
        raise _BadRecord(f"{name} is missing")
    return record[name]


def _count(record: dict[str, Any], name: str, least: int = 0) -> int:
    value = _field(record, name)
    if type(value) is not int:
        raise _BadRecord(f"{name} must be an integer, not {json.dumps(value)[:40]}")
    if not least <= value <= LONGEST:
        raise _BadRecord(f"{name} is {value}; it must lie in {least} … {LONGEST}")
    return value


def _integers(record: dict[str, Any], name: str, low: int, high: int) -> list[int]:
    values = _field(record, name)
    if not isinstance(values, list):
        raise _BadRecord(f"{name} must be a list of integers, not {json.dumps(values)[:40]}")
    if len(values) > LONGEST:
        raise _BadRecord(f"{name} has {len(values)} elements; at most {LONGEST} are allowed")
    for position, value in enumerate(values):
        if type(value) is not int or not low <= value <= high:
            raise _BadRecord(f"{name}[{position}] must be an integer in {low} … {high}, not {json.dumps(value)[:40]}")
    return values


def _check_timestamp(record: dict[str, Any]) -> None:
    value = _field(record, "timestamp")
    if type(value) is not int and not (type(value) is float and math.isfinite(value)):
        raise _BadRecord(f"timestamp must be a finite number, not {json.dumps(value)[:40]}")
