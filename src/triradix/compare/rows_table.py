"""The rows of the table itself: matching, inserting, locking, evicting, memory."""

from __future__ import annotations

from collections.abc import Iterator

from triradix.compare import eviction, memory, works
from triradix.compare.bars import CHANGE, MATCH, MEMORY, SHIPPED, at_most, bars, tokens_text
from triradix.compare.row import Floor, Row, Scale, Work


def table_works(scale: Scale) -> list[Work]:
    return [*_matches(scale), *_changes(scale), *_memory(scale)]


def _hot(length: int, times_raw: float | None, form: str = "key") -> Work:
    u32 = form == "key_u32"
    row = Row(
        f"hot-{tokens_text(length).lower()}" + ("-u32" if u32 else ""),
        f"hot match of {tokens_text(length)} tokens" + (", u32 key (peers: their only form, int64)" if u32 else ""),
        MATCH,
        parameters={"tokens": length, "page_size": 1, "key": "array('I')" if u32 else "array('q')"},
        bars=bars(times_raw) if times_raw else bars(1)[1:],
        floor=Floor(((length, 1, 1),), 1, 12 * length, 32 if u32 else 64),
    )
    return works.HotMatch(row, length, form=form)


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
        memory.BytesPerToken(
            Row(
                "rss-token-wide",
                f"resident bytes a token, {scale.long_runs} runs of 8K tokens, slots from 2³¹ on",
                MEMORY,
                "B",
                parameters={"runs": scale.long_runs, "tokens": 8192, "first_slot": 2**31},
                bars=(*at_most(12.7, "Rust at most 12.7", ("rust",)), bars(1)[1]),
            ),
            2**31,
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
