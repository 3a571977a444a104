"""The oracle and an implementation, driven with the same steps; every answer and the state behind it are compared.

A step is plain data (it can be printed, and run again): ``{"op": …, "id": …, …}``. Nodes and results have the id of
the step that made them (``"7"``, or ``"7.2"`` for element 2 of a batch). An argument ``{"bad": name}`` stands for an
entry of `BAD`, ``{"np": 3}`` for a NumPy integer. A step that names a node which was never made is passed over, so
that any subset of a list of steps can be run: that is how `shrink` makes a failure small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import oracle
from forms import in_form
from implementations import Implementation

COUNTERS = (*oracle.COUNTERS, "total_tokens")
Step = dict[str, Any]


class Difference(AssertionError):
    """The implementation does not do what the oracle does."""


BAD: dict[str, Any] = {
    "negative": [1, -1],
    "too large": [1, 2**32],
    "huge": [2**80, 1],
    "minus huge": [1, 2, -(2**80)],
    "float in list": [1, 2.0],
    "bool in list": [True, 1],
    "str in list": (1, "1"),
    "None in list": [None],
    "numpy bool": [np.bool_(1)],
    "numpy float": [np.float32(1)],
    "timedelta": [np.timedelta64(1, "s")],
    "negative array": np.array([3, -3], np.int16),
    "large array": np.array([3, 2**32], np.int64),
    "large unsigned": np.array([3, 2**63], np.uint64),
    "float array": np.array([1.0, 2.0]),
    "empty float array": np.array([], np.float32),
    "bool array": np.array([True, False]),
    "two dimensions": np.zeros((2, 2), np.int64),
    "no dimension": np.array(3),
    "str": "ab",
    "range": range(2),
    "set": {1, 2},
    "dict": {1: 2},
    "iterator": iter(()),
    "none": None,
    "int": 5,
    "float": 1.0,
    "bool": True,
    "surrogate": "\ud800",
    "surrogate pair": ("a", "\udfff"),
    "one-tuple": ("a",),
    "triple": ("a", None, "b"),
    "int pair": ("a", 5),
    "bytes pair": (b"a", None),
    "list pair": ["a", "b"],
    "bytes": b"ab",
    "minus one": -1,
    "minus one numpy": np.int8(-1),
    "numpy float scalar": np.float64(3),
    "numpy true": np.bool_(True),
    "int64 + 1": 2**63,
    "int64 - 1": -(2**63) - 1,
    "object array": np.array([1, 2], object),
    "slot too large": [1, 2**63],
    "slot too small": [-(2**63) - 1, 1],
    "slot too large array": np.array([1, 2**63], np.uint64),
}


def _value(argument: Any) -> Any:
    if isinstance(argument, dict):
        return BAD[argument["bad"]] if "bad" in argument else np.int64(argument["np"])
    return argument


def _namespace(argument: Any) -> Any:
    return tuple(argument) if isinstance(argument, list) else _value(argument)


def _attempt(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return call(), None
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # a panic of Rust is a BaseException too
        return None, error


class Missing(Exception):
    """A step names what no earlier step made."""


class Lockstep:
    def __init__(self, implementation: Implementation, config: dict[str, Any]) -> None:
        self.config = config
        self.model = oracle.RadixCache(**config)
        self.cache = implementation.create(**config)
        self.steps: list[Step] = []
        self.nodes: dict[str, tuple[Any, Any]] = {}
        self.results: dict[str, tuple[Any, Any]] = {}
        self.locks: Counter[str] = Counter()
        self._ours: dict[Any, Any] = {}  # the model's node -> the implementation's: equal here, equal there
        self._theirs: dict[Any, Any] = {}
        self._names: dict[Any, str] = {}  # the first name of each page, under which its locks are counted
        other = (oracle.RadixCache(**config), implementation.create(**config))
        key = list(range(2 * config.get("page_size", 1) + 1))
        self._foreign = tuple(cache.insert(key, key).node for cache in other)
        self._mixed = tuple(reversed(self._foreign))  # a node of another implementation

    # Steps

    def do(self, op: str, **arguments: Any) -> Any:
        """Do one step, and compare its answer and the sizes. Returns the model's result (None if it raised)."""
        step = {"op": op, "id": str(len(self.steps)), **arguments}
        self.steps.append(step)
        return self.run(step)

    def run(self, step: Step) -> Any:
        try:
            calls = [self._call(step, side) for side in (0, 1)]
        except Missing:
            return None
        (expected, error), (got, their_error) = map(_attempt, calls)
        if type(error) is not type(their_error):
            raise Difference(f"{step}\n  should raise {error!r}\n  raised       {their_error!r}, answered {got!r}")
        if error is None:
            self._compare_answers(step, expected, got)
        self._compare_sizes(step)
        return expected

    def _call(self, step: Step, side: int) -> Callable[[], Any]:
        cache = (self.model, self.cache)[side]
        op, get = step["op"], step.get
        if op in ("match", "peek", "insert"):
            key = self._key(step["key"], get("form", "list"), side)
            named: dict[str, Any] = {}
            if get("start") is not None:
                named["start"] = self._node(step["start"], side)
            namespace = _namespace(get("ns"))
            if op != "insert":
                method = cache.match_prefix if op == "match" else cache.peek_prefix
                return lambda: method(key, namespace, **named)
            values = step["values"]
            if isinstance(values, int):
                apart = get("values_apart", 1)
                values = list(range(values, values + apart * len(step["key"]), apart))
            values = self._key(values, get("values_form", "list"), side)
            for name in ("priority", "inserted_len"):
                if name in step:
                    named[name] = _value(step[name])
            return lambda: cache.insert(key, values, namespace, **named)
        if op in ("match_many", "peek_many"):
            keys: Any = step["keys"]
            if isinstance(keys, dict):
                keys = _value(keys)
            else:
                forms = get("forms") or ["list"] * len(keys)
                keys = [self._key(key, form, side) for key, form in zip(keys, forms, strict=True)]
            namespaces = get("namespaces")
            if namespaces is not None:
                listed = isinstance(namespaces, list)
                namespaces = [_namespace(n) for n in namespaces] if listed else _value(namespaces)
            batch = cache.match_prefix_many if op == "match_many" else cache.peek_prefix_many
            return lambda: batch(keys, namespaces, threads=_value(get("threads")))
        if op in ("lock", "unlock", "path", "hashes", "node"):
            node = self._node(step["node"], side)
            if op == "node":
                return lambda: (node.length, node.is_root, node.extra_key)
            if op == "path":
                return lambda: cache.path_indices(node, _value(get("from", 0)))
            method = {"lock": "inc_lock_ref", "unlock": "dec_lock_ref", "hashes": "block_hashes"}[op]
            return lambda: getattr(cache, method)(node)
        if op == "evict":
            return lambda: cache.evict(_value(step["n"]))
        if op == "evict_namespace":
            return lambda: cache.evict_namespace(_namespace(step["ns"]), _value(get("n")))
        if op == "read":
            if step["result"] not in self.results:
                raise Missing
            result = self.results[step["result"]][side]
            return lambda: result.indices
        if op == "drop":
            return lambda: self._drop() if side else None
        return {"reset": cache.reset, "events": cache.take_events, "stats": cache.stats, "check": cache.check}[op]

    def _key(self, tokens: Any, form: str, side: int) -> Any:
        if isinstance(tokens, dict):
            return _value(tokens)
        return in_form(tokens, form) if side else tokens

    def _node(self, name: Any, side: int) -> Any:
        if isinstance(name, dict):
            if name["bad"] == "foreign":
                return self._foreign[side]
            if name["bad"] == "other implementation":
                return self._mixed[side]
            return _value(name)
        if name not in self.nodes:
            raise Missing
        return self.nodes[name][side]

    def _drop(self) -> None:
        """Forget all nodes and results but those that hold a lock."""
        self.nodes = {name: pair for name, pair in self.nodes.items() if self.locks[name]}
        self.results.clear()
        self._ours = dict(self.nodes.values())
        self._theirs = {theirs: ours for ours, theirs in self.nodes.values()}
        self._names = {ours: name for name, (ours, _) in self.nodes.items()}

    # Comparisons

    def _compare_answers(self, step: Step, expected: Any, got: Any) -> None:
        op = step["op"]
        if op == "insert":
            self._same(step, "prefix_len", expected.prefix_len, got.prefix_len)
            self._same(step, "length", expected.length, got.length)
            self._new_node(step, step["id"], expected.node, got.node)
        elif op == "match":
            self._same(step, "length", expected.length, got.length)
            self._new_node(step, step["id"], expected.node, got.node)
            self._new_result(step, expected, got)
        elif op == "match_many":
            self._same(step, "lengths", expected.lengths.tolist(), got.lengths.tolist())
            self._same(step, "offsets", expected.offsets.tolist(), got.offsets.tolist())
            self._same(step, "len(nodes)", len(expected.nodes), len(got.nodes))
            for i, (ours, theirs) in enumerate(zip(expected.nodes, got.nodes, strict=True)):
                self._new_node(step, f"{step['id']}.{i}", ours, theirs)
            self._new_result(step, expected, got)
        elif op in ("evict", "evict_namespace"):
            self._same(step, "num_tokens", expected.num_tokens, got.num_tokens)
            self._same(step, "indices", expected.indices.tolist(), got.indices.tolist())
        elif op in ("path", "read", "peek_many"):
            self._same(step, "array", expected.tolist(), got.tolist())
            self._same(step, "dtype", expected.dtype, got.dtype)
        elif op == "stats":
            self._same(step, "stats", *({name: stats[name] for name in COUNTERS} for stats in (expected, got)))
        elif op not in ("drop", "check"):
            self._same(step, "answer", expected, got)
            if op in ("lock", "unlock") and not self.nodes[step["node"]][0].is_root:
                ours = self.nodes[step["node"]][0]
                self.locks[self._names.setdefault(ours, step["node"])] += 1 if op == "lock" else -1
            if op == "reset":
                self.locks.clear()

    def _new_node(self, step: Step, name: str, ours: Any, theirs: Any) -> None:
        self._same(step, "node.length", ours.length, theirs.length)
        self._same(step, "node.extra_key", ours.extra_key, theirs.extra_key)
        self._same(step, "node.is_root", ours.is_root, theirs.is_root)
        first = self._ours.setdefault(ours, theirs)
        if not first == theirs or first != theirs or hash(first) != hash(theirs):
            raise Difference(f"{step}\n  nodes of one page are not equal: {first!r}, {theirs!r}")
        if not self._theirs.setdefault(theirs, ours) == ours:
            raise Difference(f"{step}\n  nodes of two pages are equal: {theirs!r}")
        self._names.setdefault(ours, name)
        self.nodes[name] = (ours, theirs)

    def _new_result(self, step: Step, expected: Any, got: Any) -> None:
        self.results[step["id"]] = (expected, got)
        if step.get("read"):
            self._same(step, "indices", expected.indices.tolist(), got.indices.tolist())

    def _compare_sizes(self, step: Step) -> None:
        model, cache = self.model, self.cache
        total, protected = model.total_size(), model.protected_size()
        expected = (total, total - protected, protected)
        got = (cache.total_size(), cache.evictable_size(), cache.protected_size())
        self._same(step, "sizes (total, evictable, protected)", expected, got)

    def compare_all(self) -> None:
        """All that can be seen without changing anything."""
        self.run({"op": "stats"})
        self.run({"op": "check"})
        step = {"op": "all_indices"}
        self._same(step, "slots", sorted(self.model.all_indices()), sorted(self.cache.all_indices()))
        for ours, theirs in self._ours.items():
            self._same(step, "length of a node", ours.length, theirs.length)
            if not self._theirs.get(theirs) == ours:
                raise Difference(f"the hash or equality of {theirs!r} has changed")

    def drain(self) -> None:
        """Evict everything, page by page, and compare the order; then look once more at every node."""
        self.do("evict", n=1)
        for name, count in sorted(self.locks.items()):
            for _ in range(count):
                self.do("unlock", node=name)
        self.do("events")
        while self.model.total_size():
            self.do("evict", n=1)
        self.do("evict", n=10**30)
        self.do("events")
        for name in list(self.nodes):
            self.do("node", node=name)
            self.do("path", node=name)
        self.compare_all()

    @staticmethod
    def _same(step: Step, what: str, expected: Any, got: Any) -> None:
        if expected != got:
            raise Difference(f"{step}\n  {what} should be {expected!r}\n  {what} is        {got!r}")


def replay(implementation: Implementation, config: dict[str, Any], steps: Iterable[Step]) -> None:
    """Run steps again, comparing everything after each; raises `Difference` at the first that differs."""
    pair = Lockstep(implementation, config)
    for step in steps:
        pair.steps.append(step)
        pair.run(step)
        pair.compare_all()
    pair.drain()


def shrink(implementation: Implementation, config: dict[str, Any], steps: list[Step]) -> list[Step]:
    """A shorter list of steps that still shows a difference (the list itself, if it shows none when run again)."""

    def fails(some: list[Step]) -> bool:
        return _attempt(lambda: replay(implementation, config, some))[1] is not None

    if not fails(steps):
        return steps
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            if fails(fewer):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps
