"""Every row, in the order of the table. The bars are what the project's trees are to reach beside the peers."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial

import numpy as np

from triradix.compare import works
from triradix.compare.machine import EmptyCall, Part, Step, chase, compare, copy
from triradix.compare.row import Bar, Floor, Row, Scale, Work

MATCH, CHANGE, MEMORY = "Matching", "Inserting, locking, evicting", "Memory and garbage collection"
SHORT, FORMS, PAGES = "Calls of 16 tokens", "Forms of a key", "Page sizes"
BATCH, TIME, FLOOR = "Batches", "Memory over time", "What the machine itself takes"

RAW, SHIPPED = "sglang-rust-raw", "sglang-rust"


def bars(times_raw: float, versus: str = RAW) -> tuple[Bar, ...]:
    """Our Rust so many times as fast as the peer, Cython within 1.5 × of Rust, the reference not behind SGLang-Py."""
    label = "raw" if versus == RAW else "SGLang-Rust"
    return (
        Bar("rust", versus, 1 / times_raw, f"Rust at most 1/{times_raw:g} of {label}"),
        Bar("cython", "rust", 1.5, "Cython at most 1.5 × Rust"),
        Bar("reference", "sglang-py", 1.0, "Python at most SGLang-Py"),
    )


def _tokens(length: int) -> str:
    return f"{length // 1024}K" if length >= 1024 else f"{length}"


def _hot(length: int, times_raw: float | None, form: str = "key") -> Work:
    u32 = form == "key_u32"
    row = Row(
        f"hot-{_tokens(length).lower()}" + ("-u32" if u32 else ""),
        f"hot match of {_tokens(length)} tokens" + (", u32 key (peers: their only form, int64)" if u32 else ""),
        MATCH,
        parameters={"tokens": length, "page_size": 1, "key": "array('I')" if u32 else "array('q')"},
        bars=bars(times_raw) if times_raw else bars(1)[1:],
        floor=Floor(((length, 1, 1),), 1, 12 * length, 32 if u32 else 64),
    )
    return works.HotMatch(row, length, form=form)


def make_works(scale: Scale) -> list[Work]:
    """A new object for each work, in the order of the table."""
    return [*_table(scale), *_machine()]


def _table(scale: Scale) -> list[Work]:
    prompts, children = scale.prompts, scale.children
    return [
        _hot(16, None),
        _hot(128, 5),
        _hot(1024, 5.5),
        _hot(8192, 5.5),
        _hot(8192, 8, "key_u32"),
        _hot(131_072, 4),
        _hot(131_072, 6.4, "key_u32"),
        works.Resumed(
            Row(
                "resumed-128k",
                "the same, resumed at 128K with 256 new tokens (peers: the whole key)",
                MATCH,
                parameters={"context": 131_072, "new": 256},
                bars=bars(270),
                floor=Floor(((256, 1, 1),), 1, 12 * 256),
            ),
            131_072,
            256,
        ),
        works.ManyMatch(
            Row(
                "prompt-match",
                f"match of a 2K shared prompt + 256 own tokens, {prompts:,} in turn",
                MATCH,
                parameters={"shared": 2048, "own": 256, "ends": prompts},
                bars=bars(6),
                floor=Floor(((2048, prompts, 1), (256, prompts, prompts)), 2, 4 * (2048 + 256 * prompts)),
            ),
            works.prompts,
        ),
        works.FreshInsert(
            Row(
                "prompt-insert",
                "insert of the same, each end once",
                CHANGE,
                parameters={"shared": 2048, "own": 256, "ends": prompts},
                bars=bars(9),
            ),
            2048,
            256,
        ),
        works.ManyMatch(
            Row(
                "nested-match",
                "match through 64 nested prefixes, 2K tokens",
                MATCH,
                parameters={"tokens": 2048, "prefixes": 64},
                bars=bars(16),
                floor=Floor(((2048, 1, 1),), 64, 4 * 2048 + 64 * 128),
            ),
            works.nested,
        ),
        works.ManyMatch(
            Row(
                "children-match",
                f"match among {children:,} children of one node",
                MATCH,
                parameters={"children": children, "tokens": 64},
                bars=bars(6),
                floor=Floor(((32, 1000, 1), (32, 1000, 1000)), 2, 4 * 32 * children),
            ),
            works.children,
        ),
        works.Locks(
            Row("lock", "lock a path 64 deep", CHANGE, parameters={"depth": 64}, bars=bars(13)),
            Row("unlock", "unlock it", CHANGE, parameters={"depth": 64}, bars=bars(13)),
            64,
        ),
        works.Chat(
            *(
                Row(
                    f"chat-{operation}{'-resumed' if resumed else ''}",
                    f"multi-turn chat to 8K: {operation} a turn"
                    + (", resumed (peers: the whole key)" if resumed else ""),
                    MATCH if operation == "match" else CHANGE,
                    parameters={"conversations": scale.conversations, "tokens_a_turn": [200, 600], "up_to": 8192},
                    bars=bars(times),
                )
                for operation, resumed, times in (
                    ("match", False, 7),
                    ("insert", False, 9),
                    ("match", True, 42),
                    ("insert", True, 59),
                )
            )
        ),
    ]


def _machine() -> list[Work]:
    def part(name: str, title: str, make: Callable[[np.random.Generator], Step]) -> Work:
        return Part(Row(f"floor-{name}", title, FLOOR, "ns"), make)

    works: list[Work] = [EmptyCall(Row("floor-call", "an empty call", FLOOR, "ns"))]
    for length in (128, 1024, 8192, 131_072):
        short, long = _tokens(length).lower(), _tokens(length)
        works += [
            part(f"int32-{short}", f"memcmp of {long} int32 tokens", partial(compare, length, 1, 1, 32)),
            part(f"int64-{short}", f"compare of {long} int64 tokens with int32", partial(compare, length, 1, 1, 64)),
            part(f"copy-{short}", f"memcpy of {long} int64 slots", partial(copy, length)),
        ]
    for kib, title in ((16, "16 KiB"), (512, "512 KiB"), (8192, "8 MiB"), (131_072, "128 MiB")):
        works.append(
            part(
                f"load-{title.split()[0]}{title[-3].lower()}", f"dependent load over {title}", partial(chase, kib << 10)
            )
        )
    return works


def choose(available: list[Work], patterns: list[str]) -> list[Work]:
    """The works with a row that one of the patterns names. ValueError if a pattern names none."""
    for pattern in patterns:
        if not any(fnmatchcase(row.name, pattern) for work in available for row in work.rows):
            known = ", ".join(row.name for work in available for row in work.rows)
            raise ValueError(f"no row is called {pattern!r}; there are: {known}")
    return [
        work for work in available if any(fnmatchcase(row.name, pattern) for row in work.rows for pattern in patterns)
    ]
