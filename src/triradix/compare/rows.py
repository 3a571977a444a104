"""Every row, in the order of the table. The bars are what the project's trees are to reach beside the peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial

import numpy as np

from triradix.compare import batch, eviction, memory, works
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


def at_most(limit: float, text: str, systems: tuple[str, ...] = ("rust", "cython", "reference")) -> tuple[Bar, ...]:
    """The figure itself is at most the limit."""
    return tuple(Bar(system, None, limit, text) for system in systems)


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
    return [
        *_matches(scale),
        *_changes(scale),
        *_memory(scale),
        *_short(),
        *_forms_and_pages(),
        *_batches(scale),
        *_over_time(scale),
        *_machine(),
    ]


def _matches(scale: Scale) -> list[Work]:
    ends, children = scale.prompts, scale.children
    both = Floor(((2048, ends, 1), (256, ends, ends)), 2, 4 * (2048 + 256 * ends))
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
                "match resumed at 128K cached tokens with 256 new ones (peers: the whole key)",
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
                f"match of a 2K shared prompt + 256 own tokens, {ends:,} in turn",
                MATCH,
                parameters={"shared": 2048, "own": 256, "ends": ends},
                bars=bars(6),
                floor=both,
            ),
            works.prompts,
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
                "branched-match",
                "match through 64 prefixes with another end below each, 2K tokens",
                MATCH,
                parameters={"tokens": 2048, "prefixes": 64},
                floor=Floor(((2048, 1, 1),), 64, 4 * 2048 + 64 * 128),
            ),
            works.branched,
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
        works.Chat(*_chat(scale)),
    ]


def _chat(scale: Scale) -> Iterator[Row]:
    operations = (("match", False, 7), ("insert", False, 9), ("match", True, 42), ("insert", True, 59))
    for operation, resumed, times_raw in operations:
        yield Row(
            f"chat-{operation}{'-resumed' if resumed else ''}",
            f"multi-turn chat to 8K: {operation} a turn" + (", resumed (peers: the whole key)" if resumed else ""),
            MATCH if operation == "match" else CHANGE,
            parameters={"conversations": scale.conversations, "tokens_a_turn": [200, 600], "up_to": 8192},
            bars=bars(times_raw),
        )


def _changes(scale: Scale) -> list[Work]:
    few, many = scale.growth
    return [
        works.FreshInsert(
            Row(
                "prompt-insert",
                "insert of a 2K shared prompt + 256 own tokens, each end once",
                CHANGE,
                parameters={"shared": 2048, "own": 256, "ends": scale.prompts},
                bars=bars(9),
            ),
            2048,
            256,
        ),
        works.Locks(
            Row("lock", "lock a path of 64 nested prefixes", CHANGE, parameters={"depth": 64}, bars=bars(13)),
            Row("unlock", "unlock a path of 64 nested prefixes", CHANGE, parameters={"depth": 64}, bars=bars(13)),
            64,
        ),
        works.Locks(
            Row(
                "branched-lock",
                "lock a path of 64 prefixes with another end below each",
                CHANGE,
                parameters={"depth": 64},
            ),
            Row(
                "branched-unlock",
                "unlock a path of 64 prefixes with another end below each",
                CHANGE,
                parameters={"depth": 64},
            ),
            64,
            branches=True,
        ),
        eviction.Evict(
            Row(
                "evict",
                f"evict 512 tokens, {scale.leaves:,} leaves of 128 (cold), with the array",
                CHANGE,
                parameters={"leaves": scale.leaves, "tokens": 512},
                bars=(
                    # A peer's time grows with the leaves, so at fewer leaves less is asked.
                    *bars(400 * min(1.0, scale.leaves / 100_000)),
                ),
            )
        ),
        eviction.Growth(
            Row(
                "evict-growth",
                f"the time of an evict at {many:,} leaves ÷ that at {few:,}",
                CHANGE,
                "×",
                parameters={"leaves": [few, many]},
                bars=at_most(3.0, "at most 3"),
            )
        ),
    ]


def _memory(scale: Scale) -> list[Work]:
    return [
        memory.BytesPerToken(
            Row(
                "rss-token",
                f"resident bytes a token, {scale.long_runs} runs of 8K tokens, slots below 2³¹",
                MEMORY,
                "B",
                parameters={"runs": scale.long_runs, "tokens": 8192},
                bars=(*at_most(9.0, "Rust at most 9", ("rust",)), *bars(2.3, SHIPPED)),
            )
        ),
        memory.BytesPerLeaf(
            Row(
                "rss-leaf",
                f"resident bytes a leaf of 16 tokens, {scale.small_leaves:,} leaves",
                MEMORY,
                "B",
                parameters={"leaves": scale.small_leaves, "tokens": 16},
                bars=(*at_most(280.0, "Rust at most 280", ("rust",)), *bars(5.5, SHIPPED)),
            )
        ),
        memory.Collector(
            Row(
                "gc-pause",
                f"pauses of the garbage collector, in all, while {scale.nodes:,} nodes are built",
                MEMORY,
                "ms",
                parameters={"nodes": scale.nodes},
                bars=(*at_most(0.0, "Rust and Cython: none", ("rust", "cython")), bars(1)[2]),
            ),
            Row(
                "gc-objects",
                f"objects that it tracks for {scale.nodes:,} nodes",
                MEMORY,
                "objects",
                parameters={"nodes": scale.nodes},
                bars=at_most(0.0, "Rust and Cython: none", ("rust", "cython")),
            ),
        ),
    ]


def _short() -> list[Work]:
    """A user with a small model and short prompts is not to be slower with Rust."""
    never_slower = (
        Bar("rust", "cython", 1.1, "Rust at most 1.1 × Cython, or + 20 ns", slack=0.02),
        Bar("rust", "reference", 0.5, "Rust at most half of Python"),
        Bar("cython", "reference", 0.5, "Cython at most half of Python"),
    )

    def row(name: str, title: str) -> Row:
        return Row(f"short-{name}", title, SHORT, parameters={"tokens": 16}, bars=never_slower)

    return [
        works.HotMatch(row("match", "match of 16 cached tokens"), 16),
        works.HotMatch(row("slots", "match of 16 cached tokens, with its slots"), 16, call="match with its slots"),
        works.InsertAgain(row("insert-again", "insert of 16 tokens that are cached"), 16),
        works.FreshInsert(row("insert", "insert of 16 new tokens"), 0, 16),
        works.Locks(row("lock", "lock a run of 32 tokens"), row("unlock", "unlock a run of 32 tokens"), 1),
        eviction.ShortEvict(row("evict", "evict 16 tokens, with the array"), 16),
    ]


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
                Row("prefixkey-8k", "hot match of 8K tokens with a PrefixKey", FORMS, parameters={"tokens": length}),
                length,
                call="match with a PrefixKey",
                form="prefix_key",
            ),
            works.HotMatch(Row("", "", FORMS), length, form="key_u32"),
        ),
        works.HotMatch(
            Row("slots-8k", "hot match of 8K tokens with its slots", FORMS, parameters={"tokens": length}),
            length,
            call="match with its slots",
        ),
    ]
    for page_size in (16, 64):
        for length in (128, 1024, 8192):
            name = f"page{page_size}-{_tokens(length).lower()}"
            what = {"tokens": length, "page_size": page_size}
            made.append(
                works.Beside(
                    Row(
                        f"{name}-ratio",
                        f"page size {page_size} ÷ page size 1, hot match of {_tokens(length)} tokens",
                        PAGES,
                        "×",
                        parameters=what,
                        bars=at_most(1.05, f"{kept}: at most 1.05"),
                    ),
                    works.HotMatch(
                        Row(
                            name,
                            f"hot match of {_tokens(length)} tokens, page size {page_size}",
                            PAGES,
                            parameters=what,
                            floor=Floor(((length, 1, 1),), 1, 12 * length),
                        ),
                        length,
                        page_size,
                    ),
                    works.HotMatch(Row("", "", PAGES), length),
                )
            )
    return made


def _batches(scale: Scale) -> list[Work]:
    keys = scale.batch
    what = {"keys": keys, "tokens": 256, "runs": batch.RUNS_FOR_EACH_KEY * keys}
    floor = Floor(((256, keys, keys),), 1, 4 * 256 * batch.RUNS_FOR_EACH_KEY * keys)
    return [
        batch.Batch(
            Row(
                "batch-single",
                f"match of {keys:,} keys of 256 tokens one by one, a key; tree larger than the L3 cache",
                BATCH,
                parameters=what,
                floor=floor,
            ),
            Row(
                "batch-many",
                f"match of {keys:,} keys of 256 tokens in one batch, one thread, a key",
                BATCH,
                parameters=what,
            ),
            Row(
                "batch-ratio",
                f"batch of {keys:,} keys ÷ single calls",
                BATCH,
                "×",
                parameters=what,
                bars=at_most(0.6, "at most 0.6", ("rust", "cython")),
            ),
        ),
        batch.Threads(
            Row("threads-2", "batch: times as fast on two threads", BATCH, "×", lower_is_better=False, parameters=what),
            Row(
                "threads-ceiling",
                "batch: times as fast in two processes with a tree each",
                BATCH,
                "×",
                lower_is_better=False,
                parameters=what,
            ),
            Row(
                "threads-bar",
                "batch: two threads ÷ the lesser of 1.8 and 0.95 × the two processes",
                BATCH,
                "×",
                lower_is_better=False,
                parameters=what,
                bars=(Bar("rust", None, 1.0, "at least 1", at_least=True),),
            ),
        ),
        batch.Waiting(
            Row(
                "waiting",
                f"{scale.waiting:,} waiting requests (2K shared + 256 own) matched again (peers: one by one)",
                BATCH,
                "ms",
                parameters={"requests": scale.waiting, "key": "PrefixKey"},
                bars=at_most(5.0 * scale.waiting / 10_000, "Rust at most 5 ms for 10,000", ("rust",)),
            )
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
