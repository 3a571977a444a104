"""What a refused call says: the same sentence from every tree of this repository, in the caller's words.

The contract fixes the type of an exception, not its words; so trees from elsewhere are not asked.
"""

from __future__ import annotations

import copy
from array import array

import numpy as np
import pytest

import triradix

CALLS = {
    "key: form": (
        lambda c, n, o: c.match_prefix({1}),
        "key must be a list, a tuple, an integer buffer or a PrefixKey, not set",
    ),
    "key: dimension": (lambda c, n, o: c.match_prefix(np.zeros((1, 1), int)), "key must have one dimension, not 2"),
    "key: format": (lambda c, n, o: c.match_prefix(array("d")), "key must hold integers, not a buffer of format 'd'"),
    "token: type": (lambda c, n, o: c.match_prefix([1, True]), "token 1 must be an integer, not bool"),
    "token: range": (lambda c, n, o: c.match_prefix([1, 2, -7]), "token 2 is -7, outside 0 … 4294967295"),
    "token: range, buffer": (
        lambda c, n, o: c.match_prefix(array("q", [2**40])),
        f"token 0 is {2**40}, outside 0 … 4294967295",
    ),
    "token: huge": (lambda c, n, o: c.match_prefix([10**30]), f"token 0 is {10**30}, outside 0 … 4294967295"),
    "token: more digits than Python prints": (
        lambda c, n, o: c.match_prefix([1, 10**5000]),
        f"token 1 is {hex(10**5000)}, outside 0 … 4294967295",
    ),
    "priority: more digits than Python prints": (
        lambda c, n, o: c.insert([1], [1], priority=-(10**5000)),
        f"priority is {hex(-(10**5000))}, outside int64",
    ),
    "extra_key: type": (
        lambda c, n, o: c.match_prefix([1], 5),
        "extra_key must be None, a str or a pair of them, not int",
    ),
    "extra_key: length": (
        lambda c, n, o: c.match_prefix([1], ("a",)),
        "extra_key is a tuple of 1; it must be a pair (extra_key, cache_salt)",
    ),
    "extra_key: part": (
        lambda c, n, o: c.match_prefix([1], ("a", 1)),
        "the parts of an extra_key must be None or str, not int",
    ),
    "extra_key: surrogate": (
        lambda c, n, o: c.match_prefix([1], "\ud800"),
        "extra_key '\\ud800' has a character that UTF-8 cannot hold (a lone surrogate)",
    ),
    "values: number": (
        lambda c, n, o: c.insert([1, 2], [1]),
        "values has 1 elements, for a key of 2 tokens; there must be one for each token",
    ),
    "values: no length": (
        lambda c, n, o: c.insert([1], 5),
        "values must be a list, a tuple, an integer buffer or a PrefixKey, not int",
    ),
    "values: form": (
        lambda c, n, o: c.insert([1], {1}),
        "values must be a list, a tuple, an integer buffer or a PrefixKey, not set",
    ),
    "value: range": (lambda c, n, o: c.insert([1], [2**63]), f"value 0 is {2**63}, outside {-(2**63)} … {2**63 - 1}"),
    "priority: type": (lambda c, n, o: c.insert([1], [1], priority=1.0), "priority must be an integer, not float"),
    "priority: range": (lambda c, n, o: c.insert([1], [1], priority=2**63), f"priority is {2**63}, outside int64"),
    "inserted_len": (lambda c, n, o: c.insert([1], [1], inserted_len=-1), "inserted_len is -1; it cannot be negative"),
    "num_tokens": (lambda c, n, o: c.evict(-1), "num_tokens is -1; it cannot be negative"),
    "num_tokens: type": (lambda c, n, o: c.evict("1"), "num_tokens must be an integer, not str"),
    "path start": (lambda c, n, o: c.path_indices(n, -1), "start is -1; it cannot be negative"),
    "threads": (lambda c, n, o: c.match_prefix_many([], threads=0), "threads is 0; allowed: None, or 1 and more"),
    "keys": (lambda c, n, o: c.match_prefix_many(5), "keys must be a sequence, not int"),
    "keys: element": (
        lambda c, n, o: c.peek_prefix_many([[1], [-1]]),
        "keys[1]: token 0 is -1, outside 0 … 4294967295",
    ),
    "extra_keys": (lambda c, n, o: c.match_prefix_many([[1]], 5), "extra_keys must be a sequence, not int"),
    "extra_keys: number": (
        lambda c, n, o: c.match_prefix_many([[1]], []),
        "extra_keys has 0 elements, keys has 1; they must be as many",
    ),
    "extra_keys: element": (
        lambda c, n, o: c.match_prefix_many([[1]], [5]),
        "extra_keys[0]: extra_key must be None, a str or a pair of them, not int",
    ),
    "node: type": (lambda c, n, o: c.inc_lock_ref(None), "node must be a Node, not NoneType"),
    "node: other cache": (lambda c, n, o: c.block_hashes(o), "node belongs to another cache"),
    "node: no lock left": (lambda c, n, o: c.dec_lock_ref(n), "no lock of this node's page is left to take back"),
    "start: type": (lambda c, n, o: c.match_prefix([4], start=5), "start must be a Node, not int"),
    "start: other cache": (lambda c, n, o: c.match_prefix([4], start=o), "start belongs to another cache"),
    "start: namespace": (lambda c, n, o: c.match_prefix([4], "a", start=n), "extra_key is not the namespace of start"),
    "start: not joined": (
        lambda c, n, o: c.match_prefix([9, 4], start=n),
        "with bigram, a key below a node must begin with the node's last token, 3",
    ),
    "copy": (lambda c, n, o: copy.copy(c), "RadixCache objects can be neither copied nor pickled"),
    "copy of a node": (lambda c, n, o: copy.copy(n), "Node objects can be neither copied nor pickled"),
}


@pytest.mark.parametrize("case", CALLS)
def test_message(own_implementation: str, case: str) -> None:
    cache, other = triradix.create(own_implementation, bigram=True), triradix.create(own_implementation, bigram=True)
    node = cache.insert([1, 2, 3], [1, 2, 3]).node
    call, message = CALLS[case]
    with pytest.raises((TypeError, ValueError)) as caught:
        call(cache, node, other.insert([1, 2], [1, 2]).node)
    assert str(caught.value) == message
    assert cache.total_size() == 2


def test_message_of_a_stale_node(own_implementation: str) -> None:
    cache = triradix.create(own_implementation)
    nodes = [cache.insert([1], [1]).node, cache.match_prefix([2]).node]
    cache.reset()
    for node in nodes:
        with pytest.raises(LookupError) as caught:
            cache.inc_lock_ref(node)
        assert str(caught.value) == "this node is stale: its page was evicted, or the cache was reset"


def test_what_results_say_of_themselves(own_implementation: str) -> None:
    cache = triradix.create(own_implementation)
    inserted = cache.insert([1, 2], [1, 2], ("a", None))
    match = cache.match_prefix([1, 5], "a")
    root = cache.match_prefix([7]).node
    shown = [inserted, match, cache.match_prefix_many([[1], [2]]), inserted.node, root]
    assert [repr(one) for one in shown] == [
        "InsertResult(prefix_len=0, length=2)",
        "MatchResult(length=1)",
        "BatchMatchResult(2 keys)",
        "Node(length=2, extra_key=('a', None))",
        "Node(length=0)",
    ]
    assert repr(cache.evict(1)) == "EvictResult(num_tokens=1)"
    assert repr(inserted.node) == "Node(length=2, extra_key=('a', None), stale)"
    assert repr(match.node) == "Node(length=1, extra_key=('a', None))"
