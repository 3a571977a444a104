"""`PrefixKey`: a value, prepared once, that caches may remember things in; what they remember changes no result."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest
import steps
from implementations import Implementation

from triradix import PrefixKey
from triradix.keys import _Storage


def test_prefix_key_is_a_value() -> None:
    source = np.array([1, 2, 3], np.uint32)
    key = PrefixKey(source)
    source[:] = 9
    assert key.tokens.tolist() == [1, 2, 3]
    assert len(key) == 3
    assert key == PrefixKey((1, 2, 3)) == PrefixKey(key)
    assert hash(key) == hash(PrefixKey(b"\1\2\3"))
    assert key != PrefixKey([1, 2]) and key != [1, 2, 3]
    with pytest.raises((ValueError, TypeError)):
        key.tokens[0] = 5
    for tokens in (key.tokens, key[:2].tokens, key.extended([4]).tokens, PrefixKey([]).tokens):
        with pytest.raises(ValueError):
            tokens.setflags(write=True)
    key.__init__([7, 8])  # type: ignore[misc]
    assert key.tokens.tolist() == [1, 2, 3]
    with pytest.raises(TypeError):
        PrefixKey.__new__(PrefixKey)  # type: ignore[call-arg]


def test_prefix_key_slices_and_extensions() -> None:
    key = PrefixKey([1, 2, 3])
    assert key[:2].tokens.tolist() == [1, 2] and key[:-1] == key[:2] and key[:99] == key and len(key[:0]) == 0
    one, other = key.extended([4]), key.extended([5, 6])
    again, short = one.extended([7]), key[:1].extended([8])
    assert [part.tokens.tolist() for part in (key, one, other, again, short)] == [
        [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 5, 6], [1, 2, 3, 4, 7], [1, 8],
    ]  # fmt: skip
    with pytest.raises(ValueError):
        key[1:]
    with pytest.raises(ValueError):
        key[::2]
    with pytest.raises(TypeError):
        key[0]  # type: ignore[index]


@pytest.mark.parametrize("who", ["a signal handler", "another thread", "a fork"])
def test_somebody_else_extends_the_same_key_at_every_step(who: str) -> None:
    """Nobody waits, and each key has its own tokens; so it is in the child of a fork."""
    made: list[tuple[PrefixKey, list[int]]] = []

    def extend(*new: int) -> None:
        made.append((key.extended(new), [1, 2, 3, *new]))

    def action() -> None:
        if who == "another thread":
            thread = threading.Thread(target=extend, args=(7, 8))
            thread.start()
            thread.join()
        elif who == "a signal handler":
            extend(7, 8)
        elif (child := os.fork()) == 0:
            extend(7, 8)
            os._exit(0 if made[-1][0].tokens.tolist() == [1, 2, 3, 7, 8] else 1)
        else:
            assert os.waitpid(child, 0)[1] == 0

    key = PrefixKey([1, 2, 3])[:2].extended([3])  # with room behind it
    for _ in steps.at_every_step(_Storage.append, action, lambda: extend(4, 5, 6)):
        assert [one.tokens.tolist() for one, _ in made] == [right for _, right in made]
        made.clear()
        key = PrefixKey([1, 2, 3])[:2].extended([3])


@pytest.mark.parametrize("config", [{}, {"page_size": 2}, {"bigram": True}, {"page_size": 3, "bigram": True}], ids=str)
def test_prefix_keys_remember_nothing_wrong(implementation: Implementation, config: dict[str, Any]) -> None:
    """One key is matched again and again while its pages come and go, in two caches and two namespaces."""
    caches = [implementation.create(**config) for _ in range(2)]
    key = PrefixKey([1, 2, 3, 4, 5, 6])
    longer, shorter = key.extended([7, 8, 9]), key[:4]
    plain = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    for turn in range(60):
        cache, name = caches[turn % 2], (None, "a")[turn // 2 % 2]
        if turn % 3 == 0:
            cache.insert(longer[: turn % 10], list(range(turn % 10)), name)
        if turn % 5 == 0:
            cache.evict(turn % 4)
        if turn % 17 == 0:
            cache.reset()
        for form in (key, longer, shorter):
            assert cache.match_prefix(form, name).length == cache.peek_prefix(plain[: len(form)], name)
            assert cache.match_prefix(form).length == cache.match_prefix(plain[: len(form)]).length
        cache.check()
