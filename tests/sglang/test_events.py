"""KV events: message for message those of SGLang's own tree, as long as both do the same."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from scheduler import MakeCache, Scheduler
from sglang.srt.disaggregation.kv_events import AllBlocksCleared, BlockRemoved, BlockStored, KVEventBatch
from sglang.srt.mem_cache.base_prefix_cache import EvictParams
from sglang.srt.mem_cache.events import KvEventLoraNames

import triradix
from triradix.kv_events import encode_batch

ADAPTER = "0123456789abcdef0123456789abcdef"


def packed(events: list[Any]) -> list[Any]:
    """As they go over the wire."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(KVEventBatch(ts=0.0, events=events)))[1]


def names() -> KvEventLoraNames:
    made = KvEventLoraNames()
    made.register(lora_id=ADAPTER, lora_name="poet")
    made._names["known" + ADAPTER] = "poet"
    return made


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("is_eagle", [False, True])
@pytest.mark.parametrize("page_size", [1, 4])
def test_stores_are_those_of_sglang(
    ours: MakeCache, default: MakeCache, page_size: int, is_eagle: bool, dynamo: bool
) -> None:
    rng = random.Random(3)
    both = [
        Scheduler(
            make,
            20_000,
            page_size,
            is_eagle=is_eagle,
            enable_kv_cache_events=True,
            dynamo_kv_event_format=dynamo,
            kv_event_lora_names=names(),
        )
        for make in (ours, default)
    ]
    for _ in range(40):
        tokens = rng.choices(range(3), k=rng.randrange(1, 12)) + rng.choices(range(99), k=rng.randrange(1, 40))
        options = {
            "extra_key": rng.choice((None, "", "known" + ADAPTER, "other" + ADAPTER)),
            "salt": rng.choice((None, "tenant")),
        }
        answer, events = rng.randrange(12), []
        for scheduler in both:
            req = scheduler.request(tokens, **options)
            scheduler.admit(req)
            if len(tokens) - req.prefix_len > page_size:
                scheduler.prefill(req, req.prefix_len + page_size)
            scheduler.prefill(req)
            for token in range(answer):
                scheduler.decode(req, token)
            scheduler.finish(req)
            events.append(packed(scheduler.cache.take_events()))
        assert events[0] == events[1]
    # All of it goes: the same blocks, though each tree has an order of its own.
    gone = []
    for scheduler in both:
        scheduler.cache.evict(EvictParams(num_tokens=10**9))
        removed = scheduler.cache.take_events()
        assert all(isinstance(event, BlockRemoved) for event in removed)
        gone.append(sorted(block for event in removed for block in event.block_hashes))
    assert gone[0] == gone[1]
    for scheduler in both:
        scheduler.cache.reset()
    cleared = [packed(scheduler.cache.take_events()) for scheduler in both]
    assert cleared[0] == cleared[1] == [{"type": "AllBlocksCleared"}]


def test_a_replayed_stream_is_the_cache(ours: MakeCache) -> None:
    """A subscriber that applies every event holds exactly the cached pages, also after evictions."""
    rng = random.Random(5)
    scheduler = Scheduler(ours, 300, 4, enable_kv_cache_events=True)
    held: dict[int, int | None] = {}
    for turn in range(80):
        tokens = rng.choices(range(2), k=rng.randrange(1, 12)) + rng.choices(range(9), k=rng.randrange(1, 60))
        req = scheduler.request(tokens, salt=rng.choice((None, "tenant")))
        scheduler.admit(req)
        scheduler.prefill(req)
        scheduler.finish(req)
        if turn == 40:
            scheduler.cache.reset()
            scheduler.allocator.clear()
        for event in scheduler.cache.take_events():
            if isinstance(event, BlockStored):
                parent = event.parent_block_hash
                assert parent is None or parent in held
                assert len(event.token_ids) == len(event.block_hashes) * 4
                for block in event.block_hashes:
                    assert block not in held
                    held[block], parent = parent, block
            elif isinstance(event, BlockRemoved):
                for block in event.block_hashes:
                    assert block not in held.values()
                    del held[block]
            else:
                assert isinstance(event, AllBlocksCleared)
                held.clear()
        assert len(held) * 4 == scheduler.cache.total_size()


def test_off_means_none(ours: MakeCache) -> None:
    scheduler = Scheduler(ours)
    req = scheduler.request(range(10))
    scheduler.admit(req)
    scheduler.prefill(req)
    scheduler.finish(req)
    assert scheduler.cache.take_events() == []


@pytest.mark.parametrize("namespace", [None, "adapter", ("adapter", "tenant")])
def test_the_bytes_of_the_publisher_are_those_of_sglang(namespace: Any) -> None:
    """`triradix.kv_events`, for engines of one's own, against SGLang's encoder."""
    cache = triradix.create("rust", page_size=2, bigram=True, enable_kv_cache_events=True)
    cache.insert(list(range(9)), list(range(9)), namespace)
    cache.insert([*range(5), 70, 71, 72], list(range(8)), namespace)
    cache.evict(4)
    cache.reset()
    events = cache.take_events()
    translated: list[Any] = []
    for event in events:
        if isinstance(event, triradix.BlockStored):
            fields = {name: getattr(event, name) for name in vars(event) if name != "extra_key"}
            salt = None if event.extra_key is None else event.extra_key[1]
            translated.append(BlockStored(**fields, cache_salt=salt))
        elif isinstance(event, triradix.BlockRemoved):
            translated.append(BlockRemoved(**vars(event)))
        else:
            translated.append(AllBlocksCleared())
    assert {type(event).__name__ for event in translated} == {"BlockStored", "BlockRemoved", "AllBlocksCleared"}
    theirs = msgspec.msgpack.encode(KVEventBatch(ts=1.5, events=translated, attn_dp_rank=0))
    assert encode_batch(events, 1.5, 0) == theirs
