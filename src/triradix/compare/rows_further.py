"""The further rows: short calls, forms of a key, page sizes, batches, threads, memory over time, the machine itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from triradix.compare import batch, eviction, gil, memory, works
from triradix.compare.bars import BATCH, FLOOR, FORMS, PAGES, SHORT, THREADS, TIME, at_least, at_most, tokens_text
from triradix.compare.machine import EmptyCall, Part, Step, chase, compare, copy
from triradix.compare.row import Bar, Floor, Row, Scale, Work


def further_works(scale: Scale) -> list[Work]:
    return [*_short(), *_forms_and_pages(), *_batches(scale), *_threads(scale), *_over_time(scale), *_machine()]


def _short() -> list[Work]:
    """A user with a small model and short prompts is not to be slower with Rust."""
    never_slower = (
        Bar("rust", "cython", 1.1, "Rust at most 1.1 × Cython, or + 20 ns", slack=0.02),
        Bar("rust", "reference", 0.5, "Rust at most half of Python"),
        Bar("cython", "reference", 0.5, "Cython at most half of Python"),
    )

    def row(name: str, title: str, floor: Floor | None = None) -> Row:
        return Row(f"short-{name}", title, SHORT, parameters={"tokens": 16}, bars=never_slower, floor=floor)

    match, with_slots = _hot_floor(16), _hot_floor(16, slots=16)
    return [
        works.HotMatch(row("match", "match of 16 cached tokens", match), 16),
        works.HotMatch(
            row("slots", "match of 16 cached tokens, with its slots", with_slots), 16, call="match with its slots"
        ),
        works.InsertAgain(row("insert-again", "insert of 16 tokens that are cached"), 16),
        works.FreshInsert(row("insert", "insert of 16 new tokens"), 0, 16),
        works.Locks(row("lock", "lock a run of 32 tokens"), row("unlock", "unlock a run of 32 tokens"), 1),
        eviction.ShortEvict(row("evict", "evict 16 tokens, with the array"), 16),
    ]


def _hot_floor(length: int, **more: Any) -> Floor:
    return Floor(((length, 1, 1),), 1, **more)


def _forms_and_pages() -> list[Work]:
    length, kept = 8192, "page sizes are to be no slower"
    made: list[Work] = [
        works.HotMatch(
            Row(
                "list-8k",
                "hot match of a list of 8K ints, a token (SGLang: made an array first)",
                FORMS,
                "ns",
                parameters={"tokens": length, "key": "list"},
                bars=at_most(1.5, "at most 1.5 ns a token", ("rust", "cython")),
                floor=_hot_floor(length, matches=1 / length, judged=False),
            ),
            length,
            call="match of a list",
            form="list",
        ),
        works.Beside(
            Row(
                "prefixkey-8k-ratio",
                "hot match of 8K tokens with a PrefixKey ÷ with a u32 key",
                FORMS,
                "×",
                parameters={"tokens": length},
                bars=at_most(1.05, "a PrefixKey costs nothing after its first use: at most 1.05"),
            ),
            works.HotMatch(
                Row(
                    "prefixkey-8k",
                    "hot match of 8K tokens with a PrefixKey",
                    FORMS,
                    parameters={"tokens": length},
                    floor=_hot_floor(length, key_bits=32),
                ),
                length,
                call="match with a PrefixKey",
                form="prefix_key",
            ),
            works.HotMatch(Row("", "", FORMS), length, form="key_u32"),
        ),
        works.HotMatch(
            Row(
                "slots-8k",
                "hot match of 8K tokens with its slots",
                FORMS,
                parameters={"tokens": length},
                floor=_hot_floor(length, slots=length),
            ),
            length,
            call="match with its slots",
        ),
    ]
    for page_size in (16, 64):
        for length in (128, 1024, 8192):
            name = f"page{page_size}-{tokens_text(length).lower()}"
            what = {"tokens": length, "page_size": page_size}
            made.append(
                works.Beside(
                    Row(
                        f"{name}-ratio",
                        f"page size {page_size} ÷ page size 1, hot match of {tokens_text(length)} tokens",
                        PAGES,
                        "×",
                        parameters=what,
                        bars=at_most(1.05, f"{kept}: at most 1.05"),
                    ),
                    works.HotMatch(
                        Row(
                            name,
                            f"hot match of {tokens_text(length)} tokens, page size {page_size}",
                            PAGES,
                            parameters=what,
                            floor=_hot_floor(length),
                        ),
                        length,
                        page_size,
                    ),
                    works.HotMatch(Row("", "", PAGES), length),
                )
            )
    return made


def _batches(scale: Scale) -> list[Work]:
    def beside(name: str, keys: int, tree: str, limit: float) -> Work:
        what = {"keys": keys, "tokens": 256, "runs": batch.RUNS_FOR_EACH_KEY * keys}
        floor = Floor(((256, keys, keys),), 1)
        return batch.Batch(
            Row(
                f"{name}-single",
                f"match of {keys:,} keys of 256 tokens one by one, a key; {tree}",
                BATCH,
                parameters=what,
                floor=floor,
            ),
            Row(
                f"{name}-many",
                f"match of {keys:,} keys of 256 tokens in one batch, one thread, a key",
                BATCH,
                parameters=what,
                floor=floor,
            ),
            Row(
                f"{name}-ratio",
                f"batch of {keys:,} keys ÷ single calls",
                BATCH,
                "×",
                parameters=what,
                bars=at_most(limit, f"at most {limit:g}", ("rust", "cython")),
            ),
            keys=keys,
        )

    waiting = scale.waiting
    return [
        beside("batch", scale.batch, "tree larger than the L3 cache", 0.6),
        beside("batch-near", 64, "tree in a near cache", 1.0),
        batch.Waiting(
            Row(
                "waiting",
                f"{waiting:,} waiting requests (2K shared + 256 own) matched again (peers: one by one)",
                BATCH,
                "ms",
                parameters={"requests": waiting, "key": "PrefixKey"},
                bars=at_most(5.0 * waiting / 10_000, "Rust at most 5 ms for 10,000", ("rust",)),
                floor=Floor(((2048, waiting, 1), (256, waiting, waiting)), 2, key_bits=32, matches=waiting),
            )
        ),
    ]


def _threads(scale: Scale) -> list[Work]:
    keys = scale.batch

    def row(name: str, title: str, *bars: Bar) -> Row:
        what = {"keys": keys, "tokens": 256, "runs": batch.RUNS_FOR_EACH_KEY * keys}
        return Row(name, title, THREADS, "×", lower_is_better=False, parameters=what, bars=bars)

    return [
        batch.Threads(
            row("threads-2", f"batch of {keys:,} keys: times as fast on two threads"),
            row("threads-ceiling", "batch: times as much in two processes with a tree each"),
            row(
                "threads-bar",
                "batch: two threads ÷ the lesser of 1.8 and 0.95 × the two processes",
                *at_least(1.0, "Rust: at least 1", ("rust",)),
            ),
            keys=keys,
        ),
        gil.PythonThreads(
            row(
                "gil-kept",
                "speed of another Python thread while a batch runs with threads=1 ÷ its own",
                *at_least(0.9, "Rust and Cython: at least 0.9", ("rust", "cython")),
            ),
            row(
                "gil-threads-2",
                "batches of 64 keys from two Python threads: times as fast as from one",
                *at_most(1.0, "Python: at most 1, since the GIL lets one thread work at a time", ("reference",)),
            ),
            keys=keys,
        ),
    ]


def _over_time(scale: Scale) -> list[Work]:
    what = {"capacity": scale.capacity, "turnovers": 10}
    return [
        memory.Turnover(
            Row(
                "turnover-rss",
                "memory of a full cache after 10 turnovers ÷ when it was fresh",
                TIME,
                "×",
                parameters=what,
                bars=at_most(1.15, "at most 1.15"),
            ),
            Row(
                "turnover-growth",
                "memory of a full cache after 10 turnovers ÷ after 2",
                TIME,
                "×",
                parameters=what,
                bars=at_most(1.02, "no growth: at most 1.02, which pages of memory leave open"),
            ),
        ),
        memory.Reads(
            Row(
                "reads-memory",
                "bytes a page after runs of 2,000 tokens were matched up to each page, the longest first",
                TIME,
                "B",
                parameters={"runs": scale.read_runs},
                bars=at_most(64.0, "at most 64"),
            ),
            Row(
                "reads-match",
                "one whole match of runs so read ÷ one of fresh runs",
                TIME,
                "×",
                parameters={"runs": scale.read_runs},
                bars=at_most(2.0, "at most 2"),
            ),
        ),
        memory.AloneAgain(
            Row(
                "alone-match",
                f"match of {scale.path:,} tokens that had a branch at each and are alone again ÷ of a fresh run",
                TIME,
                "×",
                parameters={"tokens": scale.path},
                bars=at_most(1.1, "as fast as fresh: at most 1.1"),
            )
        ),
    ]


def _machine() -> list[Work]:
    def part(name: str, title: str, make: Callable[[np.random.Generator], Step]) -> Work:
        return Part(Row(f"floor-{name}", title, FLOOR, "ns"), make)

    works: list[Work] = [EmptyCall(Row("floor-call", "an empty call", FLOOR, "ns"))]
    for length in (128, 1024, 8192, 131_072):
        short, long = tokens_text(length).lower(), tokens_text(length)
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
