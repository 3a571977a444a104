"""The adapter on SGLang's own pools and requests."""

from __future__ import annotations

import random
from array import array
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from scheduler import MakeCache, OutOfMemory, Scheduler
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.managers.schedule_policy import SchedulePolicy
from sglang.srt.mem_cache.base_prefix_cache import BasePrefixCache, EvictParams, InsertParams, MatchPrefixParams
from sglang.srt.mem_cache.common import match_kv_cache
from sglang.srt.mem_cache.radix_cache import RadixKey

from triradix.config import POLICIES
from triradix.sglang.cache import MATCH_ALL_WAITING

PAGE_SIZES = (1, 4, 16)


def run(scheduler: Scheduler, tokens: list[int], answer: int = 0, **options: Any) -> int:
    """One request from beginning to end; returns its hit."""
    req = scheduler.request(tokens, **options)
    hit = scheduler.admit(req)
    scheduler.prefill(req)
    for token in range(answer):
        scheduler.decode(req, 9000 + token)
    scheduler.check()
    scheduler.finish(req)
    scheduler.check()
    return hit


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("is_eagle", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_random_serving(ours: MakeCache, page_size: int, is_eagle: bool, policy: str) -> None:
    """Chunks, decoding, retraction, namespaces, priorities and an evicting pool: no slot is lost, none is wrong."""
    rng = random.Random(f"{page_size} {is_eagle} {policy}")
    scheduler = Scheduler(ours, 600, page_size, is_eagle=is_eagle, eviction_policy=policy)
    heads = [[rng.randrange(1000) for _ in range(rng.randrange(1, 90))] for _ in range(4)]
    waiting: list[Req] = []
    hits = 0
    for _ in range(250):
        running = scheduler.running
        do = rng.choice(("arrive", "arrive", "match", "start", "start", "decode", "decode", "retract", "finish"))
        req = rng.choice(waiting if do in ("match", "start") else running) if (waiting and running) else None
        try:
            if do == "arrive" and len(waiting) < 5:
                tokens = rng.choice(heads)[: rng.randrange(1, 90)] + rng.choices(range(6), k=rng.randrange(30))
                names = rng.choice(("adapter", None, None)), rng.choice(("tenant", None, None))
                waiting.append(scheduler.request(tokens, *names, priority=rng.choice((None, 0, 5))))
            elif do == "start" and waiting and len(running) < 4:
                req = waiting.pop(rng.randrange(len(waiting)))
                hits += scheduler.admit(req)
                end = len(req.full_untruncated_fill_ids)
                if end - req.prefix_len > page_size and rng.random() < 0.5:
                    scheduler.prefill(req, rng.randrange(req.prefix_len + 1, end))
                    scheduler.check()
                scheduler.prefill(req)
            elif req is None:
                continue
            elif do == "match":
                match_kv_cache(req, scheduler.cache)
            elif do == "decode":
                scheduler.decode(req, rng.randrange(6))
            elif do == "retract":
                scheduler.retract(req)
                waiting.append(req)
            elif do == "finish":
                scheduler.finish(req)
        except OutOfMemory:
            assert req is not None
            scheduler.retract(req)
            waiting.append(req)
        scheduler.check()
    assert hits > 100
    for req in list(scheduler.running):
        scheduler.finish(req)
    scheduler.check()
    assert scheduler.cache.protected_size() == 0
    scheduler.cache.evict(EvictParams(num_tokens=10**9))
    assert scheduler.allocator.available_size() == scheduler.size


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("is_eagle", [False, True])
def test_hits_are_those_of_sglang(ours: MakeCache, theirs: MakeCache, page_size: int, is_eagle: bool) -> None:
    """While nothing is evicted (what goes first may differ: page by page here, by whole nodes there)."""
    rng = random.Random(page_size)
    both = [Scheduler(make, 40_000, page_size, is_eagle=is_eagle) for make in (ours, theirs)]
    said = [rng.choices(range(500), k=rng.randrange(1, 200)) for _ in range(5)]
    for _ in range(60):
        tokens = rng.choice(said)[: rng.randrange(1, 400)] + rng.choices(range(500), k=rng.randrange(1, 50))
        said.append(tokens)
        answer, names = rng.randrange(20), {"extra_key": rng.choice((None, "a")), "salt": rng.choice((None, "b"))}
        hits = [run(scheduler, tokens, answer, **names) for scheduler in both]
        assert hits[0] == hits[1]
        sizes = [scheduler.cache.total_size() for scheduler in both]
        assert sizes[0] == sizes[1]


def test_the_priority_of_a_prompt_is_above_that_of_its_answer(ours: MakeCache) -> None:
    """An older prompt outlives a newer answer; the answers go in the order of their last use."""
    scheduler = Scheduler(ours, 400, eviction_policy="priority")
    run(scheduler, list(range(100)), answer=20, priority=3)
    run(scheduler, list(range(500, 600)), answer=20, priority=3)
    scheduler.cache.evict(EvictParams(num_tokens=20))
    assert run(scheduler, [*range(100), 9000, 1], priority=3) == 100
    assert run(scheduler, [*range(500, 600), 9000, 1], priority=3) == 101
    # A higher one stays, whatever its age.
    run(scheduler, list(range(800, 820)), priority=9)
    scheduler.cache.evict(EvictParams(num_tokens=scheduler.cache.total_size() - 20))
    assert run(scheduler, [*range(800, 820), 1]) == 20


def test_a_prompt_within_a_longer_checkpoint_is_raised(ours: MakeCache) -> None:
    """After a retraction the prompt and its answer are computed, and checkpointed, in one go."""
    scheduler = Scheduler(ours, 400, eviction_policy="priority")
    req = scheduler.request(range(50), priority=1)
    scheduler.admit(req)
    scheduler.prefill(req)
    for token in range(10):
        scheduler.decode(req, 9000 + token)
    scheduler.retract(req)
    scheduler.cache.evict(EvictParams(num_tokens=1000))
    scheduler.admit(req)
    scheduler.prefill(req)
    scheduler.finish(req)
    run(scheduler, list(range(100, 150)), priority=1)
    scheduler.cache.evict(EvictParams(num_tokens=60))
    # Gone: its answer and the younger prompt, which is of the lower priority.
    assert scheduler.cache.total_size() == 50
    assert run(scheduler, [*range(50), 1]) == 50


def test_a_step_costs_what_is_new(ours: MakeCache) -> None:
    """Chunks and turns hand the tree only what it has not seen of the request."""
    scheduler = Scheduler(ours, 4000)
    given: list[int] = []

    class Spy:
        def __init__(self, cache: Any) -> None:
            self._cache = cache

        def __getattr__(self, name: str) -> Any:
            method = getattr(self._cache, name)
            if name not in ("match_prefix", "insert"):
                return method

            def counted(key: Any, *arguments: Any, **options: Any) -> Any:
                given.append(len(key))
                return method(key, *arguments, **options)

            return counted

    scheduler.cache._cache = Spy(scheduler.cache._cache)
    req = scheduler.request(range(1000))
    scheduler.admit(req)
    for end in (400, 800, 1000):
        scheduler.prefill(req, end)
    for token in range(10):
        scheduler.decode(req, token)
    scheduler.finish(req)
    assert given == [999, 400, 400, 200, 10]
    given.clear()
    again = scheduler.request([*range(1000), *range(10), 7, 7])
    for _ in range(3):
        match_kv_cache(again, scheduler.cache)
    scheduler.admit(again)
    scheduler.prefill(again)
    assert given == [1012, 2, 2, 1, 2]


def test_a_waiting_request_whose_prefix_went(ours: MakeCache) -> None:
    scheduler = Scheduler(ours)
    run(scheduler, list(range(50)))
    req = scheduler.request(range(60))
    match_kv_cache(req, scheduler.cache)
    assert req.prefix_len == 50
    scheduler.cache.evict(EvictParams(num_tokens=20))
    match_kv_cache(req, scheduler.cache)
    assert req.prefix_len == 30
    scheduler.cache.reset()
    scheduler.allocator.clear()
    assert scheduler.admit(req) == 0
    scheduler.prefill(req)
    scheduler.check()


def test_a_shorter_limit_than_the_last_match(ours: MakeCache) -> None:
    """A prompt that is cached whole is matched whole while it waits, and all but its last token when it starts."""
    scheduler = Scheduler(ours)
    run(scheduler, list(range(50)))
    req = scheduler.request(range(50))
    match_kv_cache(req, scheduler.cache)
    assert req.prefix_len == 50
    assert scheduler.admit(req) == 49


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_nothing_is_read_from_the_device(ours: MakeCache, page_size: int) -> None:
    """On a device without contents, where every read raises."""
    scheduler = Scheduler(ours, 640, page_size, device="meta")
    with pytest.raises((NotImplementedError, RuntimeError)):
        scheduler.slots.tolist()
    cache, rows, allocator = scheduler.cache, scheduler.rows, scheduler.allocator
    for turn in range(4):
        shared = list(range(100)) + [1000 + turn % 2] * 60
        req = scheduler.request(shared)
        req.init_next_round_input(cache)
        req.lock = cache.lock(req.last_node)
        assert cache.prefix_device_indices(req).shape == (req.prefix_len,)
        rows.alloc([req])
        for end in (130, 160):
            # As if two requests of one prompt had been computed at a time: the second finds its slots taken.
            slots = allocator.alloc(160)
            rows.write((req.kv.req_pool_idx, slice(0, 160)), slots)
            cache.checkpoint(req, up_to=end)
        cache.free_kv_row(req.kv, [(req.kv.cache_protected_len, 160)])
        cache.unlock(req.lock)
        assert cache.evict(EvictParams(num_tokens=page_size)).num_tokens_evicted == page_size
        allocator.clear()
    assert cache.all_values_flatten().shape == (cache.total_size(),)


def test_every_waiting_request_is_matched_if_asked(ours: MakeCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """By SGLang's own policy, though it serves first who came first."""
    for asked, hits in (("0", [0, 0]), ("1", [50, 40])):
        monkeypatch.setenv(MATCH_ALL_WAITING, asked)
        scheduler = Scheduler(ours)
        run(scheduler, list(range(50)))
        waiting = [scheduler.request([*range(50), 1]), scheduler.request([*range(40), 1])]
        policy = SchedulePolicy("fcfs", scheduler.cache, False, False, False)
        policy.calc_priority(waiting)
        assert [req.num_matched_prefix_tokens for req in waiting] == hits


def test_flush(ours: MakeCache) -> None:
    scheduler = Scheduler(ours)
    run(scheduler, list(range(50)))
    scheduler.cache.reset()
    scheduler.allocator.clear()
    scheduler.check()
    assert scheduler.cache.total_size() == 0
    assert run(scheduler, list(range(50))) == 0
    assert run(scheduler, list(range(50))) == 49


def test_disabled(ours: MakeCache) -> None:
    """It keeps nothing, and does not even look at how it would evict."""
    scheduler = Scheduler(ours, disable=True, eviction_policy="tlru", enable_kv_cache_events=True)
    assert not scheduler.cache.supports_prefix_sharing()
    for _ in range(2):
        assert run(scheduler, list(range(50)), answer=3) == 0
    assert scheduler.cache.total_size() == 0
    assert scheduler.allocator.available_size() == scheduler.size
    assert scheduler.cache.take_events() == []
    assert scheduler.cache.evict(EvictParams(num_tokens=5)).num_tokens_evicted == 0


def test_insert_as_sglang_has_it(ours: MakeCache, theirs: MakeCache) -> None:
    """`insert` by itself, with slots and without."""
    for make in (ours, theirs):
        cache = Scheduler(make, page_size=4).cache
        key = RadixKey(tokens_of(range(10)))
        result = cache.insert(InsertParams(key=key, value=torch.arange(100, 110)))
        assert result.prefix_len == 0
        assert cache.path_device_indices(result.last_device_node).tolist() == list(range(100, 108))
        assert cache.insert(InsertParams(key=RadixKey(tokens_of(range(6))), value=torch.arange(6))).prefix_len == 4
        found = cache.match_prefix(MatchPrefixParams(key=RadixKey(tokens_of([*range(4), 9, 9, 9, 9]))))
        assert found.device_prefix_len == 4
        cache.insert(InsertParams(key=RadixKey(tokens_of([7] * 4), extra_key="other")))
        assert cache.total_size() == 12
        assert sorted(cache.all_values_flatten().tolist()) == [7] * 4 + list(range(100, 108))


def test_touch_prefix_keeps_what_it_touches(ours: MakeCache) -> None:
    scheduler = Scheduler(ours)
    run(scheduler, list(range(50)))
    run(scheduler, list(range(100, 150)))
    scheduler.cache.touch_prefix(RadixKey(tokens_of(range(60))))
    scheduler.cache.evict(EvictParams(num_tokens=50))
    assert run(scheduler, [*range(50), 1]) == 50


def tokens_of(tokens: Any) -> array[int]:
    return array("q", tokens)


def test_evictions_are_counted_in_sglangs_metrics(ours: MakeCache, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Mock()
    # The real one wants the ranks of a whole engine.
    monkeypatch.setattr(
        BasePrefixCache, "init_metrics_collector", lambda self: setattr(self, "metrics_collector", collector)
    )
    scheduler = Scheduler(ours, enable_metrics=True)
    run(scheduler, list(range(50)))
    scheduler.cache.evict(EvictParams(num_tokens=20))
    scheduler.cache.evict(EvictParams(num_tokens=0))
    collector.increment_eviction_num_tokens.assert_called_once_with(20)
    collector.observe_eviction_duration.assert_called_once()
