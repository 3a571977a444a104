"""KV events over ZeroMQ: what a subscriber hears is what is cached."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import zmq
from implementations import Implementation

import triradix
from triradix.kv_events import EventPublisher, encode_batch

ANYWHERE = "tcp://127.0.0.1:*"


class Listener:
    """A subscriber that waits at most some seconds for a batch."""

    def __init__(self, publisher: EventPublisher) -> None:
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.setsockopt(zmq.SUBSCRIBE, b"")
        self.socket.setsockopt(zmq.RCVTIMEO, 20_000)
        self.socket.connect(publisher.endpoint)

    def meet(self, publisher: EventPublisher) -> None:
        """A subscription takes a moment: publish until something arrives, and hear all of that."""
        self.socket.setsockopt(zmq.RCVTIMEO, 50)
        for block in range(400):
            publisher.publish([triradix.BlockRemoved([block])])
            try:
                self.socket.recv_multipart()
            except zmq.Again:
                continue
            break
        self.socket.setsockopt(zmq.RCVTIMEO, 20_000)
        publisher.publish([triradix.BlockRemoved([-1])])
        while self.hear()[2][1][0]["block_hashes"] != [-1]:
            pass

    def hear(self) -> tuple[bytes, int, list[Any]]:
        topic, number, payload = self.socket.recv_multipart()
        return topic, int.from_bytes(number, "big"), msgspec.msgpack.decode(payload)


@pytest.fixture
def publisher() -> Iterator[EventPublisher]:
    with EventPublisher(ANYWHERE, topic="kv-events", replay_endpoint=ANYWHERE, dp_rank=3) as made:
        yield made


@pytest.fixture
def listener(publisher: EventPublisher) -> Iterator[Listener]:
    made = Listener(publisher)
    yield made
    made.socket.close(linger=0)


def apply(held: dict[int, tuple[int | None, Any]], events: list[dict[str, Any]]) -> None:
    """What a router does: page by page, each under the one above it."""
    for event in events:
        if event["type"] == "BlockStored":
            size, parent = event["block_size"], event["parent_block_hash"]
            assert parent is None or parent in held
            assert len(event["token_ids"]) == size * len(event["block_hashes"])
            for index, block in enumerate(event["block_hashes"]):
                assert block not in held
                held[block] = parent, event["token_ids"][index * size : (index + 1) * size]
                parent = block
        elif event["type"] == "BlockRemoved":
            for block in event["block_hashes"]:
                assert all(parent != block for parent, _ in held.values()), "a page went before those below it"
                del held[block]
        else:
            assert event == {"type": "AllBlocksCleared"}
            held.clear()


@pytest.mark.parametrize(("page_size", "bigram"), [(1, False), (4, False), (4, True)])
def test_a_stream_rebuilds_what_is_cached(
    implementation: Implementation, publisher: EventPublisher, listener: Listener, page_size: int, bigram: bool
) -> None:
    rng = random.Random(1)
    cache = implementation.cls(page_size=page_size, bigram=bigram, enable_kv_cache_events=True)
    listener.meet(publisher)
    last = 0
    held: dict[int, tuple[int | None, Any]] = {}
    nodes = []
    for step in range(150):
        do = rng.random()
        if do < 0.7:
            tokens = rng.choices(range(2), k=rng.randrange(8)) + rng.choices(range(50), k=rng.randrange(30))
            namespace = rng.choice((None, "adapter", (None, "tenant")))
            nodes.append(cache.insert(tokens, list(range(len(tokens))), namespace).node)
        elif do < 0.95:
            cache.evict(rng.randrange(40))
        elif step > 100:
            cache.reset()
            nodes.clear()
        events = cache.take_events()
        publisher.publish(events)
        if not events:
            continue
        topic, number, (_, heard, rank) = listener.hear()
        assert (topic, rank) == (b"kv-events", 3)
        assert number == last + 1 or not last
        last = number
        apply(held, heard)
        assert len(held) * page_size == cache.total_size()
    alive = [node for node in nodes if is_alive(cache, node)]
    assert alive
    for node in alive:
        hashes = [int.from_bytes(digest[:8], "big", signed=True) for digest in cache.block_hashes(node)]
        assert all(block in held for block in hashes)
        assert [held[block][0] for block in hashes] == [None, *hashes[:-1]][: len(hashes)]


def is_alive(cache: triradix.PrefixCache, node: triradix.Node) -> bool:
    try:
        cache.path_indices(node)
    except triradix.StaleNodeError:
        return False
    return True


def test_who_missed_some_hears_them_again(publisher: EventPublisher, listener: Listener) -> None:
    listener.meet(publisher)
    for block in range(5):
        publisher.publish([triradix.BlockRemoved([block])])
    heard = [listener.hear() for _ in range(5)]
    assert [batch[1][0]["block_hashes"] for _, _, batch in heard] == [[block] for block in range(5)]
    again = zmq.Context.instance().socket(zmq.DEALER)
    again.setsockopt(zmq.RCVTIMEO, 20_000)
    assert publisher.replay_endpoint is not None
    again.connect(publisher.replay_endpoint)
    again.send_multipart((b"no request",))
    again.send_multipart((b"", heard[2][1].to_bytes(8, "big")))
    answers: list[list[bytes]] = []
    while not answers or answers[-1][2] != (-1).to_bytes(8, "big", signed=True):
        answers.append(again.recv_multipart())
    again.close(linger=0)
    assert [
        (frames[1], int.from_bytes(frames[2], "big"), msgspec.msgpack.decode(frames[3])) for frames in answers[:-1]
    ] == heard[2:]


def test_the_bytes() -> None:
    """Field by field; `tests/sglang` compares them with SGLang's own encoder."""
    events = [
        triradix.BlockStored([7, -8], None, [1, 2, 3, 4], 2, extra_key=("adapter", "tenant")),
        triradix.BlockRemoved([7]),
        triradix.AllBlocksCleared(),
    ]
    assert msgspec.msgpack.decode(encode_batch(events, 1.5, 0)) == [
        1.5,
        [
            {
                "type": "BlockStored",
                "block_hashes": [7, -8],
                "parent_block_hash": None,
                "token_ids": [1, 2, 3, 4],
                "block_size": 2,
                "lora_id": None,
                "medium": "GPU",
                "cache_salt": "tenant",
            },
            {"type": "BlockRemoved", "block_hashes": [7], "medium": "GPU"},
            {"type": "AllBlocksCleared"},
        ],
        0,
    ]


def test_closing() -> None:
    publisher = EventPublisher(ANYWHERE)
    publisher.close()
    publisher.close()
    with pytest.raises(ValueError, match="closed"):
        publisher.publish([triradix.AllBlocksCleared()])


def test_what_server_info_says(publisher: EventPublisher) -> None:
    assert publisher.replay_endpoint is not None
    assert publisher.describe(16) == {
        "publisher": "zmq",
        "endpoint_host": "127.0.0.1",
        "endpoint_port_base": int(publisher.endpoint.rpartition(":")[2]),
        "topic": "kv-events",
        "block_size": 16,
        "dp_size": 1,
        "replay_endpoint_port_base": int(publisher.replay_endpoint.rpartition(":")[2]),
    }
    with EventPublisher("inproc://here") as local, pytest.raises(ValueError, match="only tcp"):
        local.describe(16)


def test_an_endpoint_that_is_taken(publisher: EventPublisher) -> None:
    with pytest.raises(zmq.ZMQError):
        EventPublisher(publisher.endpoint)
    with pytest.raises(zmq.ZMQError):
        EventPublisher(ANYWHERE, replay_endpoint=publisher.endpoint)
