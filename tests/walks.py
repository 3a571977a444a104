"""Seeded random walks: one seed chooses a configuration and the steps, with tokens so few that pages are shared, runs
are split and merged, and nodes go stale all the time.
"""

from __future__ import annotations

import random
from typing import Any

from forms import FORMS
from implementations import Implementation
from lockstep import Difference, Lockstep, shrink

from triradix.config import POLICIES

NAMESPACES: list[Any] = [None, "", "a", ["a", None], ["a", "b"], [None, "b"], [None, None], "ü"]
BAD_KEYS = [
    "negative", "too large", "huge", "minus huge", "float in list", "bool in list", "str in list", "None in list",
    "numpy bool", "numpy float", "timedelta", "negative array", "large array", "large unsigned", "float array",
    "empty float array", "bool array", "two dimensions", "no dimension", "str", "range", "set", "dict", "iterator",
    "none", "int", "float", "object array",
]  # fmt: skip
BAD_NAMESPACES = [
    "surrogate", "surrogate pair", "one-tuple", "triple", "int pair", "bytes pair", "list pair", "bytes", "int", "bool",
]  # fmt: skip
BAD_VALUES = [
    "float in list", "bool in list", "str in list", "float array", "bool array", "two dimensions", "str", "range",
    "set", "dict", "iterator", "none", "int", "slot too large", "slot too small", "slot too large array", "huge",
]  # fmt: skip
BAD_NUMBERS = ["float", "bool", "str", "numpy float scalar", "numpy true", "none"]
BAD_COUNTS = [*BAD_NUMBERS, "minus one", "minus one numpy"]
BAD_PRIORITIES = [*BAD_NUMBERS, "int64 + 1", "int64 - 1"]
FORM_NAMES = sorted(FORMS)
WEIGHTS = {
    "insert": 30, "match": 20, "peek": 4, "match_many": 5, "peek_many": 2, "lock": 7, "unlock": 8, "evict": 9,
    "evict_namespace": 3, "path": 3, "hashes": 3, "node": 3, "read": 4, "events": 2, "drop": 1, "reset": 0.4, "bad": 6,
}  # fmt: skip


class Walk:
    def __init__(self, implementation: Implementation, seed: int) -> None:
        self.implementation = implementation
        self.random = random.Random(seed)
        pick = self.random.choice
        self.config: dict[str, Any] = {
            "page_size": pick([1, 1, 1, 2, 2, 3, 16, 64]),
            "eviction_policy": pick(POLICIES),
            "bigram": self.random.random() < 0.35,
            "slru_threshold": pick([1, 2, 2, 3]),
            "enable_kv_cache_events": self.random.random() < 0.6,
        }
        self.page_size: int = self.config["page_size"]
        self.tokens = pick([[0, 1], [1, 2, 3], [0, 2**32 - 1, 2**31], [5, 6, 7, 8, 9]])
        self.namespaces = self.random.sample(NAMESPACES, pick([1, 1, 2, 3]))
        self.longest = pick([4, 8, 8, 20]) if self.page_size < 16 else 5
        self.rate = pick([0.2, 0.5, 0.5, 0.8])
        self.keys: list[list[int]] = [[]]
        self.slot = 0
        self.pair = Lockstep(implementation, self.config)

    def run(self, steps: int) -> None:
        weights: dict[str, float] = dict(WEIGHTS)
        if self.random.random() < 0.3:
            weights["evict"] *= self.random.choice([0.1, 3])
            weights["lock"] *= self.random.choice([0, 3])
        ops = self.random.choices(list(weights), list(weights.values()), k=steps)
        for count, op in enumerate(ops):
            getattr(self, op)()
            if count % 8 == 7:
                self.pair.compare_all()
        self.pair.compare_all()
        self.pair.drain()

    # Choices

    def key(self, units: int | None = None) -> list[int]:
        """Often what an earlier key began with, then something else; mostly whole pages, sometimes a part more."""
        choose = self.random
        page = self.page_size
        count = choose.randint(0, self.longest) if units is None else units
        key = list(choose.choice(self.keys[-12:])) if choose.random() < self.rate else []
        key = key[: choose.randint(0, len(key) // page + 1) * page + self.config["bigram"]]
        while len(key) < count * page:
            if page < 16:
                key.append(choose.choice(self.tokens))
            else:
                filler = choose.choice(self.tokens)
                block = [self.tokens[0]] * page
                block[choose.choice([0, page // 2, page - 1])] = filler
                key += block
        if choose.random() < 0.3:
            key += [choose.choice(self.tokens)] * choose.randint(0, page)
        self.keys.append(key)
        return key

    def namespace(self) -> Any:
        return self.random.choice(self.namespaces)

    def some_node(self) -> str | None:
        names = list(self.pair.nodes)
        if not names:
            return None
        return self.random.choice(names if self.random.random() < 0.3 else names[-6:])

    def form(self) -> str:
        return "list" if self.random.random() < 0.5 else self.random.choice(FORM_NAMES)

    def beginning(self) -> dict[str, Any]:
        """A key, and where it begins: at a namespace, or below a node."""
        name = self.some_node() if self.random.random() < 0.35 else None
        if name is None:
            return {"key": self.key(), "form": self.form(), "ns": self.namespace()}
        page = self.pair.nodes[name][0].page
        key = self.key(self.random.randint(0, 3))
        if self.config["bigram"] and page.parent is not None and self.random.random() < 0.9:
            key = [page.units[-1][1], *key]
        step: dict[str, Any] = {"key": key, "form": self.form(), "start": name}
        if self.random.random() < 0.3:
            step["ns"] = list(page.namespace) if self.random.random() < 0.8 else self.namespace()
        return step

    def count(self, largest: int) -> Any:
        number = self.random.randint(0, largest)
        return {"np": number} if self.random.random() < 0.1 else number

    # Steps

    def insert(self) -> None:
        step = self.beginning()
        length = len(step["key"])
        step["values"] = self.slot
        if self.random.random() < 0.3:
            step["values_apart"] = 3
        self.slot += length * step.get("values_apart", 1)
        if self.random.random() < 0.1:
            step["values"] += self.random.choice([2**32, 2**40, -(2**40)])
        if self.random.random() < 0.3:
            step["values_form"] = self.random.choice(["tuple", "numpy <i8", "numpy 8 strided", "numpy <i4", "array q"])
        if self.random.random() < 0.05:
            step["values"] = [self.random.choice([-1, 0, 2**63 - 1, -(2**63)]) for _ in range(length)]
            step["values_form"] = "list"
        if self.random.random() < 0.6:
            step["priority"] = self.random.choice([0, 1, 2, 3, -1, 2**63 - 1, -(2**63), {"np": 2}])
        if self.random.random() < 0.5:
            step["inserted_len"] = self.count(self.page_size * 8) if self.random.random() < 0.9 else 10**25
        self.pair.do("insert", **step)

    def match(self) -> None:
        self.pair.do("match", **self.beginning(), read=self.random.random() < 0.5)

    def peek(self) -> None:
        self.pair.do("peek", **self.beginning())

    def _many(self) -> dict[str, Any]:
        keys = [self.key() for _ in range(self.random.randint(0, 6))]
        step: dict[str, Any] = {"keys": keys, "forms": [self.form() for _ in keys]}
        if self.random.random() < 0.7:
            step["namespaces"] = [self.namespace() for _ in keys]
        if self.random.random() < 0.7:
            step["threads"] = self.random.choice([1, 2, 3, {"np": 2}, 10**20])
        return step

    def match_many(self) -> None:
        self.pair.do("match_many", **self._many(), read=self.random.random() < 0.5)

    def peek_many(self) -> None:
        self.pair.do("peek_many", **self._many())

    def _with_node(self, op: str, **more: Any) -> None:
        name = self.some_node()
        if name is not None:
            self.pair.do(op, node=name, **more)

    def lock(self) -> None:
        self._with_node("lock")

    def unlock(self) -> None:
        held = sorted(self.pair.locks.elements())
        if held and self.random.random() < 0.85:
            self.pair.do("unlock", node=self.random.choice(held))
        else:
            self._with_node("unlock")

    def path(self) -> None:
        self._with_node("path", **{"from": self.count(self.page_size * 6) if self.random.random() < 0.9 else 2**70})

    def hashes(self) -> None:
        self._with_node("hashes")

    def read(self) -> None:
        if self.pair.results:
            self.pair.do("read", result=self.random.choice(list(self.pair.results)))

    def evict(self) -> None:
        wanted = self.random.choice([0, 1, self.page_size, self.count(self.page_size * 8), 10**25])
        self.pair.do("evict", n=wanted)

    def evict_namespace(self) -> None:
        wanted = self.random.choice([None, None, 1, self.count(self.page_size * 4)])
        self.pair.do("evict_namespace", ns=self.random.choice([*self.namespaces, "none such"]), n=wanted)

    def events(self) -> None:
        self.pair.do("events")

    def drop(self) -> None:
        self.pair.do("drop")

    def reset(self) -> None:
        self.pair.do("reset")

    def node(self) -> None:
        self._with_node("node")

    def bad(self) -> None:
        """One wrong argument or several: the first in the order of the protocol decides."""
        choose = self.random

        def perhaps(kinds: list[str], rate: float = 0.4) -> Any:
            return {"bad": choose.choice(kinds)} if choose.random() < rate else None

        op = choose.choice(["insert", "insert", "insert", "match", "peek", "many", "evict", "path", "node"])
        if op in ("insert", "match", "peek"):
            step = self.beginning()
            step["form"] = "list"
            step["key"] = perhaps(BAD_KEYS) or step["key"]
            step["ns"] = perhaps(BAD_NAMESPACES, 0.3) or step.get("ns")
            if choose.random() < 0.3:
                step["start"] = {"bad": choose.choice(["foreign", "other implementation"])}
            if op == "insert":
                step["values"] = perhaps(BAD_VALUES) or [5] * (2 + choose.randint(-2, 2))
                step["priority"] = perhaps(BAD_PRIORITIES, 0.3) or 7
                step["inserted_len"] = perhaps(BAD_COUNTS, 0.3) or 1
            self.pair.do(op, **step)
        elif op == "many":
            step = self._many()
            step["forms"] = None
            step["keys"] = [perhaps(BAD_KEYS, 0.2) or key for key in step["keys"]]
            if choose.random() < 0.2:
                step["keys"] = {"bad": choose.choice(["str", "bytes", "float array", "set", "dict", "iterator", "int"])}
            if choose.random() < 0.6:
                step["namespaces"] = [perhaps(BAD_NAMESPACES, 0.2) for _ in range(choose.randint(0, 6))]
            elif choose.random() < 0.3:
                step["namespaces"] = {"bad": choose.choice(["str", "bytes", "int", "set", "iterator"])}
            step["threads"] = perhaps([*BAD_COUNTS[:-3], "minus one"], 0.3) or step.get("threads")
            self.pair.do(choose.choice(["match_many", "peek_many"]), **step)
        elif op == "evict":
            self.pair.do("evict", n={"bad": choose.choice(BAD_COUNTS)})
            bad_count = {"bad": choose.choice([kind for kind in BAD_COUNTS if kind != "none"])}
            self.pair.do("evict_namespace", ns=perhaps(BAD_NAMESPACES, 0.5), n=bad_count)
        elif op == "path":
            self._with_node("path", **{"from": {"bad": choose.choice(BAD_COUNTS)}})
        else:
            bad = {"bad": choose.choice(["foreign", "other implementation", "none", "int", "str"])}
            self.pair.do(choose.choice(["lock", "unlock", "path", "hashes"]), node=bad)


def walk(implementation: Implementation, seed: int, steps: int, make_small: bool = True) -> None:
    """Run one walk; a difference is made small and told with all that is needed to run it again."""
    one = Walk(implementation, seed)
    try:
        one.run(steps)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        small = shrink(implementation, one.config, one.pair.steps) if make_small else one.pair.steps
        listed = ",\n    ".join(map(repr, small))
        raise Difference(
            f"{error}\n\nseed {seed}; again: pytest tests/test_random_walk.py --implementation {implementation}"
            f" --walk-seed {seed}\nlockstep.replay(implementation, {one.config},\n  [\n    {listed},\n  ])"
        ) from error
