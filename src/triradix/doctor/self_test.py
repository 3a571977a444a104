"""Whether an implementation answers as the protocol says: a few calls with known answers, and a long seeded walk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from triradix.config import POLICIES
from triradix.errors import StaleNodeError

Create = Callable[..., Any]

ANSWERS = "dda07265"
"""First digits of the SHA-256 of everything that the walk is answered. The suite's own model says the same."""

STEPS = 60


class Fault(Exception):
    """What is wrong, as one sentence."""


def self_test(create: Create) -> None:
    """Raise `Fault` unless caches of ``create(**config)`` do as the protocol says. Takes some 0.1 s."""
    for check in (_finds_and_frees, _hashes, _locks, _refuses):
        try:
            check(create)
        except Fault:
            raise
        except Exception as error:
            raise Fault(f"{check.__name__.strip('_')} raised {type(error).__name__}: {error}") from error
    try:
        answers = walk(create)
    except Exception as error:
        raise Fault(f"the walk raised {type(error).__name__}: {error}") from error
    if answers != ANSWERS:
        raise Fault("a walk of seeded calls was answered otherwise than the protocol says")


def _expect(told: object, right: object, what: str) -> None:
    if told != right:
        raise Fault(f"{what} is {told}, and {right} would be right")


def _finds_and_frees(create: Create) -> None:
    cache = create(page_size=2)
    _expect(cache.insert([1, 2, 3, 4, 5], [10, 11, 12, 13, 14]).length, 4, "the length of an insert of two pages")
    hit = cache.match_prefix([1, 2, 3, 9])
    _expect((hit.length, hit.indices.tolist()), (2, [10, 11]), "a match of one page")
    _expect(cache.match_prefix([1, 2], "other").length, 0, "a match in another namespace")
    _expect(cache.evict(1).indices.tolist(), [12, 13], "what an eviction frees first")
    _expect(cache.total_size(), 2, "the size after the eviction")
    cache.check()


def _hashes(create: Create) -> None:
    cache = create(enable_kv_cache_events=True)
    node = cache.insert([7, 2**32 - 1], [0, 1], ("tenant", None)).node
    seed = hashlib.sha256(b"sglang-cache-namespace-v1\x01" + (6).to_bytes(8, "little") + b"tenant\x00").digest()
    first = hashlib.sha256(seed + (7).to_bytes(4, "little")).digest()
    second = hashlib.sha256(first + b"\xff" * 4).digest()
    _expect(cache.block_hashes(node) == [first, second], True, "that block hashes are SHA-256 of the pages")
    (event,) = cache.take_events()
    right = [int.from_bytes(digest[:8], "big", signed=True) for digest in (first, second)]
    _expect(event.block_hashes, right, "the hashes of an event")


def _locks(create: Create) -> None:
    cache = create()
    node = cache.insert([1, 2, 3], [0, 1, 2]).node
    _expect(cache.inc_lock_ref(node), 3, "the units that a lock protects")
    _expect(cache.evict(3).num_tokens, 0, "what is evicted of locked pages")
    _expect(cache.dec_lock_ref(node), 3, "the units that a release gives back")
    _expect(cache.evict(3).indices.tolist(), [2, 1, 0], "what is evicted after the release")
    try:
        cache.inc_lock_ref(node)
    except StaleNodeError:
        return
    raise Fault("a node whose page was evicted is still taken")


def _refuses(create: Create) -> None:
    cache = create()
    for key in ([1, 2**32], [1, -1]):
        try:
            cache.insert(key, [0, 1])
        except ValueError:
            continue
        raise Fault(f"the key {key} is taken, although a token is 0 … 2**32 - 1")
    _expect(cache.total_size(), 0, "the size after calls that were refused")


def walk(create: Create) -> str:
    """The first digits of the SHA-256 of all answers to seeded calls, with every policy, with and without pages."""
    told = hashlib.sha256()
    numbers = _numbers()
    for policy in POLICIES:
        for page_size, bigram in ((1, False), (3, False), (2, True)):
            cache = create(
                page_size=page_size, eviction_policy=policy, bigram=bigram, enable_kv_cache_events=page_size > 1
            )
            for answer in _steps(cache, numbers):
                told.update(repr(answer).encode())
            cache.check()
    return told.hexdigest()[:8]


def _steps(cache: Any, numbers: Iterator[int]) -> Iterator[object]:
    slot = 0
    for _ in range(STEPS):
        kind = next(numbers) % 10
        key = [next(numbers) % 3 for _ in range(next(numbers) % 14)]
        space = (None, "a")[next(numbers) % 2]
        if kind < 4:
            new = cache.insert(key, list(range(slot, slot + len(key))), space, priority=next(numbers) % 3)
            slot += len(key)
            yield new.prefix_len, new.length
            if kind == 0:
                yield cache.inc_lock_ref(new.node), cache.protected_size()
                yield cache.dec_lock_ref(new.node), cache.evictable_size()
            elif kind == 1:
                yield [digest.hex() for digest in cache.block_hashes(new.node)]
        elif kind < 7:
            found = cache.match_prefix(key, space)
            yield found.length, found.indices.tolist()
        elif kind < 8:
            yield cache.peek_prefix(key, space)
        else:
            freed = cache.evict(next(numbers) % 9)
            yield freed.num_tokens, freed.indices.tolist()
    counts = cache.stats()
    yield [counts[name] for name in ("lookups", "lookup_tokens", "hit_tokens", "inserts", "inserted_tokens")]
    yield cache.total_size(), sorted(cache.all_indices().tolist()), len(cache.take_events())


def _numbers() -> Iterator[int]:
    """The same everywhere and in every version of Python: Knuth's linear congruences (MMIX)."""
    state = 2026
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33
