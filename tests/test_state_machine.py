"""Hypothesis chooses the calls and their arguments; the oracle and the implementation must agree after each of them.

Nodes and results of earlier steps are drawn from bundles by name; what a step is, see `lockstep`. The page size and all
other arguments of the cache are drawn too, and tokens are few, so that sharing, splits, merges and stale nodes are
the rule.
"""

from __future__ import annotations

from typing import Any

from forms import FORMS
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from implementations import Implementation
from lockstep import Lockstep
from walks import BAD_COUNTS, BAD_KEYS, BAD_NAMESPACES, BAD_NUMBERS, BAD_PRIORITIES, BAD_VALUES

from triradix.config import POLICIES

TOKENS = st.sampled_from([1, 2, 3]) | st.sampled_from([0, 2**31, 2**32 - 1])
NAMES = st.sampled_from([None, None, None, "", "a", ["a", None], ["a", "b"], [None, "b"]])
LENGTHS = st.integers(0, 9)
PRIORITIES = st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)])
FORM = st.sampled_from(["list", *sorted(FORMS)])


def bad(kinds: list[str]) -> st.SearchStrategy[dict[str, str]]:
    return st.sampled_from(kinds).map(lambda kind: {"bad": kind})


CONFIGS = st.fixed_dictionaries(
    {
        "page_size": st.sampled_from([1, 2, 16, 64]),
        "eviction_policy": st.sampled_from(POLICIES),
        "bigram": st.booleans(),
        "slru_threshold": st.integers(1, 4),
        "enable_kv_cache_events": st.booleans(),
    }
)


class Agreement(RuleBasedStateMachine):
    """The implementation is set by the test: one subclass for each."""

    implementation: Implementation
    nodes: Bundle[str] = Bundle("nodes")
    results: Bundle[str] = Bundle("results")

    pair: Lockstep

    @initialize(config=CONFIGS)
    def begin(self, config: dict[str, Any]) -> None:
        self.config = config
        self.pair = Lockstep(self.implementation, config)
        self.slot = 0

    def key(self, data: st.DataObject, whole: int = 5) -> list[int]:
        """Pages of few kinds, and sometimes a part of one more."""
        size = self.config["page_size"]
        if size < 16:
            key = data.draw(st.lists(TOKENS, max_size=whole * size))
        else:
            key = []
            for token, at in data.draw(st.lists(st.tuples(TOKENS, st.sampled_from([0, 7, size - 1])), max_size=whole)):
                page = [1] * size
                page[at] = token
                key += page
        return key + [1] * data.draw(st.sampled_from([0, 0, 1, size - 1]))

    def below(self, data: st.DataObject, node: str) -> list[int]:
        """A key that goes on below a node; for bigrams it joins, most of the time."""
        key = self.key(data, 2)
        page = self.pair.nodes[node][0].page
        if self.config["bigram"] and page.parent is not None and data.draw(st.integers(0, 7)):
            key = [page.units[-1][1], *key]
        return key

    def do(self, op: str, **arguments: Any) -> Any:
        expected = self.pair.do(op, **arguments)
        self.pair.compare_all()
        return expected

    @property
    def last(self) -> str:
        return str(len(self.pair.steps) - 1)

    def made(self) -> Any:
        """The node of the last step, if it made one."""
        return self.last if self.last in self.pair.nodes else multiple()

    def insert(self, data: st.DataObject, key: Any, **more: Any) -> Any:
        if "values" not in more:
            more["values"] = self.slot
            more["values_apart"] = data.draw(st.sampled_from([1, 3]))
            self.slot += len(key) * more["values_apart"]
        if data.draw(st.booleans()):
            more.setdefault("priority", data.draw(PRIORITIES))
            more.setdefault("inserted_len", data.draw(st.integers(0, 6 * self.config["page_size"])))
        self.do("insert", key=key, form=data.draw(FORM), **more)
        return self.made()

    @rule(target=nodes, data=st.data(), ns=NAMES)
    def insert_from_root(self, data: st.DataObject, ns: Any) -> Any:
        return self.insert(data, self.key(data), ns=ns)

    @rule(target=nodes, data=st.data(), node=nodes, ns=st.none() | NAMES)
    def insert_below(self, data: st.DataObject, node: str, ns: Any) -> Any:
        return self.insert(data, self.below(data, node), start=node, ns=ns)

    @rule(target=nodes, data=st.data(), ns=NAMES, form=FORM, read=st.booleans())
    def match(self, data: st.DataObject, ns: Any, form: str, read: bool) -> Any:
        self.do("match", key=self.key(data), form=form, ns=ns, read=read)
        return self.made()

    @rule(target=nodes, data=st.data(), node=nodes, form=FORM, read=st.booleans(), ns=st.none() | NAMES)
    def match_below(self, data: st.DataObject, node: str, form: str, read: bool, ns: Any) -> Any:
        self.do("match", key=self.below(data, node), form=form, start=node, ns=ns, read=read)
        return self.made()

    @rule(target=results, data=st.data(), ns=NAMES)
    def match_and_read_later(self, data: st.DataObject, ns: Any) -> Any:
        self.do("match", key=self.key(data), ns=ns)
        return self.last

    @rule(result=results)
    def read(self, result: str) -> None:
        self.do("read", result=result)

    @rule(data=st.data(), ns=NAMES, form=FORM)
    def peek(self, data: st.DataObject, ns: Any, form: str) -> None:
        self.do("peek", key=self.key(data), form=form, ns=ns)

    @rule(data=st.data(), node=nodes)
    def peek_below(self, data: st.DataObject, node: str) -> None:
        self.do("peek", key=self.below(data, node), start=node)

    @rule(
        target=nodes,
        data=st.data(),
        count=st.integers(0, 5),
        threads=st.sampled_from([None, 1, 2, 4]),
        peek=st.booleans(),
        read=st.booleans(),
    )
    def batch(self, data: st.DataObject, count: int, threads: int | None, peek: bool, read: bool) -> Any:
        keys = [self.key(data, 3) for _ in range(count)]
        forms = data.draw(st.lists(FORM, min_size=count, max_size=count))
        namespaces = data.draw(st.none() | st.lists(NAMES, min_size=count, max_size=count))
        more: dict[str, Any] = {} if peek else {"read": read}
        op = "peek_many" if peek else "match_many"
        self.do(op, keys=keys, forms=forms, namespaces=namespaces, threads=threads, **more)
        if peek:
            return multiple()
        return multiple(*(f"{self.last}.{i}" for i in range(count) if f"{self.last}.{i}" in self.pair.nodes))

    @rule(node=nodes)
    def lock(self, node: str) -> None:
        self.do("lock", node=node)

    @rule(node=nodes)
    def unlock(self, node: str) -> None:
        self.do("unlock", node=node)

    @precondition(lambda self: any(self.pair.locks.values()))
    @rule(data=st.data())
    def unlock_what_is_locked(self, data: st.DataObject) -> None:
        self.do("unlock", node=data.draw(st.sampled_from(sorted(self.pair.locks.elements()))))

    @rule(pages=st.integers(0, 6), part=st.booleans())
    def evict(self, pages: int, part: bool) -> None:
        self.do("evict", n=max(0, pages * self.config["page_size"] - part))

    @rule(ns=NAMES, pages=st.none() | st.integers(0, 3))
    def evict_namespace(self, ns: Any, pages: int | None) -> None:
        self.do("evict_namespace", ns=ns, n=pages and pages * self.config["page_size"])

    @rule(node=nodes, pages=st.integers(0, 6), part=st.booleans())
    def path(self, node: str, pages: int, part: bool) -> None:
        self.do("path", node=node, **{"from": pages * self.config["page_size"] + part})

    @rule(node=nodes)
    def hashes(self, node: str) -> None:
        self.do("hashes", node=node)

    @rule(node=nodes)
    def look_at(self, node: str) -> None:
        self.do("node", node=node)

    @rule()
    def events(self) -> None:
        self.do("events")

    @rule(chance=st.integers(0, 9))
    def reset(self, chance: int) -> None:
        if chance == 9:
            self.do("reset")

    @rule(
        data=st.data(),
        key=st.none() | bad(BAD_KEYS),
        ns=NAMES | bad(BAD_NAMESPACES),
        values=st.none() | bad(BAD_VALUES) | st.integers(0, 3).map(lambda count: [9] * count),
        priority=PRIORITIES | bad(BAD_PRIORITIES),
        inserted_len=st.integers(0, 3) | bad(BAD_COUNTS),
        start=st.none() | bad(["foreign", "other implementation"]),
    )
    def insert_badly(self, data: st.DataObject, key: Any, values: Any, **more: Any) -> None:
        key = [1, 2] if key is None else key
        self.do("insert", key=key, values=[7, 8] if values is None else values, **more)

    @rule(op=st.sampled_from(["match", "peek"]), key=bad(BAD_KEYS), ns=NAMES | bad(BAD_NAMESPACES))
    def find_badly(self, op: str, key: Any, ns: Any) -> None:
        self.do(op, key=key, ns=ns)

    @rule(
        data=st.data(),
        op=st.sampled_from(["match_many", "peek_many"]),
        keys=st.lists(st.just([1, 2]) | bad(BAD_KEYS), max_size=4) | bad(["str", "bytes", "set", "iterator", "none"]),
        threads=st.none() | bad([kind for kind in BAD_COUNTS if kind != "none"]),
    )
    def batch_badly(self, data: st.DataObject, op: str, keys: Any, threads: Any) -> None:
        one = NAMES | bad(BAD_NAMESPACES)
        namespaces = data.draw(st.none() | st.lists(one, max_size=4) | bad(["str", "bytes", "set", "int"]))
        self.do(op, keys=keys, namespaces=namespaces, threads=threads)

    @rule(
        op=st.sampled_from(["lock", "unlock", "hashes", "path"]),
        node=bad(["foreign", "other implementation", "none", "int", "str"]),
    )
    def ask_of_no_node(self, op: str, node: Any) -> None:
        self.do(op, node=node)

    @rule(op=st.sampled_from(["match", "peek"]), node=bad(["foreign", "other implementation", "int", "str"]))
    def start_at_no_node(self, op: str, node: Any) -> None:
        self.do(op, key=[1, 2], start=node)

    @rule(node=nodes, number=bad(BAD_COUNTS))
    def path_badly(self, node: str, number: Any) -> None:
        self.do("path", node=node, **{"from": number})

    @rule(
        number=bad(BAD_COUNTS), namespace_number=bad([*BAD_NUMBERS[:-1], "minus one"]), ns=NAMES | bad(BAD_NAMESPACES)
    )
    def evict_badly(self, number: Any, namespace_number: Any, ns: Any) -> None:
        self.do("evict", n=number)
        self.do("evict_namespace", ns=ns, n=namespace_number)

    def teardown(self) -> None:
        if hasattr(self, "pair"):
            self.pair.drain()


def test_agreement(implementation: Implementation) -> None:
    machine = type("Agreement", (Agreement,), {"implementation": implementation})
    run_state_machine_as_test(machine)
