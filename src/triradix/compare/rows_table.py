"""The rows of the table itself: matching, inserting, locking, evicting, memory."""

from __future__ import annotations

from collections.abc import Iterator

from triradix.compare import eviction, memory, works
from triradix.compare.bars import CHANGE, MATCH, MEMORY, SHIPPED, at_most, bars, tokens_text
from triradix.compare.row import Bar, Floor, Row, Scale, Work, scattered, slots

# How the slots of a run lie: a row's name and title say it where they lie apart.
ORDERS = (("", "", slots), ("-scattered", ", slots in no order", scattered))


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
        floor=Floor(((length, 1, 1),), 1, 32 if u32 else 64),
    )
    return works.HotMatch(row, length, form=form)


def _matches(scale: Scale) -> list[Work]:
    ends, children, asked = scale.prompts, scale.children, works.asked_children(scale)
    path = {"tokens": 2048, "prefixes": 64}

    def many(
        make: works.Keys, times_raw: float | None, floor: Floor, name: str, title: str, **parameters: int
    ) -> works.ManyMatch:
        judged = bars(times_raw) if times_raw else ()
        return works.ManyMatch(Row(name, title, MATCH, parameters=parameters, bars=judged, floor=floor), make)

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
                floor=Floor(((256, 1, 1),), 1),
            ),
            131_072,
            256,
        ),
        many(
            works.prompts,
            6,
            Floor(((2048, ends, 1), (256, ends, ends)), 2),
            "prompt-match",
            f"match of a 2K shared prompt + 256 own tokens, {ends:,} in turn",
            **{"shared": 2048, "own": 256, "ends": ends},
        ),
        many(
            works.nested,
            16,
            Floor(((2048, 1, 1),), 64),
            "nested-match",
            "match through 64 nested prefixes, 2K tokens",
            **path,
        ),
        many(
            works.branched,
            None,
            Floor(((2048, 1, 1),), 64),
            "branched-match",
            "match through 64 prefixes with another end below each, 2K tokens",
            **path,
        ),
        many(
            works.children,
            6,
            Floor(((32, asked, 1), (32, asked, asked)), 2),
            "children-match",
            f"match of {asked:,} in turn among {children:,} children of one node",
            **{"children": children, "asked": asked, "tokens": 64},
        ),
        works.Chat(*_chat(scale)),
    ]


def _chat(scale: Scale) -> Iterator[Row]:
    operations = (("match", False, 7), ("insert", False, 9), ("match", True, 42), ("insert", True, 59))
    who = scale.conversations
    for operation, resumed, times_raw in operations:
        # Of the same tokens at every turn as the conversations have on the average.
        length = works.TURN if resumed else (works.TURN + works.UP_TO) // 2
        yield Row(
            f"chat-{operation}{'-resumed' if resumed else ''}",
            f"multi-turn chat to 8K: {operation} a turn" + (", resumed (peers: the whole key)" if resumed else ""),
            MATCH if operation == "match" else CHANGE,
            parameters={"conversations": who, "tokens_a_turn": [*works.TURNS], "up_to": works.UP_TO},
            bars=bars(times_raw),
            floor=Floor(((length, who, who),), 1) if operation == "match" else None,
        )


def _changes(scale: Scale) -> list[Work]:
    few, many = scale.growth
    return [
        *(
            works.FreshInsert(
                Row(
                    f"prompt-insert{kind}",
                    f"insert of a 2K shared prompt + 256 own tokens, each end once{among}",
                    CHANGE,
                    parameters={"shared": 2048, "own": 256, "ends": scale.prompts},
                    bars=bars(9),
                ),
                2048,
                256,
                order,
            )
            for kind, among, order in ORDERS
        ),
        _locks("", "64 nested prefixes", bars(13)),
        _locks("branched-", "64 prefixes with another end below each", (), branches=True),
        *(
            eviction.Evict(
                Row(
                    f"evict{kind}",
                    f"evict 512 tokens, {scale.leaves:,} leaves of 128 (cold), with the array{among}",
                    CHANGE,
                    parameters={"leaves": scale.leaves, "tokens": 512},
                    # A peer's time grows with the leaves, so at fewer leaves less is asked.
                    bars=bars(400 * min(1.0, scale.leaves / 100_000)),
                ),
                order,
            )
            for kind, among, order in ORDERS
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


def _locks(kind: str, path: str, judged: tuple[Bar, ...], branches: bool = False) -> Work:
    lock, unlock = (
        Row(f"{kind}{what}", f"{what} a path of {path}", CHANGE, parameters={"depth": 64}, bars=judged)
        for what in ("lock", "unlock")
    )
    return works.Locks(lock, unlock, 64, branches)


def _memory(scale: Scale) -> list[Work]:
    runs, leaves, nodes = scale.long_runs, scale.small_leaves, {"nodes": scale.nodes}

    def held(name: str, title: str, rust: float, *further: Bar, **parameters: int) -> Row:
        judged = (*at_most(rust, f"Rust at most {rust:g}", ("rust",)), *further)
        return Row(name, f"resident bytes a {title}", MEMORY, "B", parameters=parameters, bars=judged)

    tokens = f"token, {runs} runs of 8K tokens, slots"
    return [
        *(
            memory.BytesPerToken(
                held(f"rss-token{kind}", f"{tokens} below 2³¹{among}", 9, *bars(2.3, SHIPPED), runs=runs, tokens=8192),
                slots=order,
            )
            for kind, among, order in ORDERS
        ),
        *(
            memory.BytesPerToken(
                held(
                    f"rss-token-wide{kind}",
                    f"{tokens} from 2³¹ on{among}",
                    12.7,
                    bars(1)[1],
                    runs=runs,
                    tokens=8192,
                    first_slot=2**31,
                ),
                slots=order,
                first_slot=2**31,
            )
            for kind, among, order in ORDERS
        ),
        *(
            memory.BytesPerLeaf(
                held(
                    f"rss-leaf{kind}",
                    f"leaf of 16 tokens, {leaves:,} leaves{among}",
                    280,
                    *bars(5.5, SHIPPED),
                    leaves=leaves,
                    tokens=16,
                ),
                slots=order,
            )
            for kind, among, order in ORDERS
        ),
        memory.Collector(
            Row(
                "gc-pause",
                f"pauses of the garbage collector, in all, while {scale.nodes:,} nodes are built",
                MEMORY,
                "ms",
                parameters=nodes,
                bars=(*at_most(0.0, "Rust and Cython: none", ("rust", "cython")), bars(1)[2]),
            ),
            Row(
                "gc-objects",
                f"objects that it tracks for {scale.nodes:,} nodes",
                MEMORY,
                "objects",
                parameters=nodes,
                bars=at_most(0.0, "Rust and Cython: none", ("rust", "cython")),
            ),
        ),
    ]
