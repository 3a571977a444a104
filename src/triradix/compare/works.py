"""How each row of single calls is measured. Keys are made beforehand, in the form that an engine holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from triradix.compare.adapter import Adapter, CannotDo, Tokens
from triradix.compare.row import Row, Scale, Slots, Work, slots, tokens

_AT_ONCE = 64  # the same key this often in the inner loop


class HotMatch(Work):
    """One cached run, matched whole, again and again."""

    def __init__(self, row: Row, length: int, page_size: int = 1, call: str = "match", form: str = "key") -> None:
        super().__init__(row)
        self.length, self.page_size, self.call, self.form = length, page_size, call, form

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.tree = adapter(self.page_size)
        run = tokens(rng, self.length)
        self.tree.insert(self.tree.key(run), self.tree.values(slots(0, self.length)))
        key = run.tolist() if self.form == "list" else getattr(self.tree, self.form)(run)
        self.loop = self.tree.loop(self.call)
        self.items = [key] * _AT_ONCE
        self.key, self.usual_key = key, self.tree.key(run)
        self.times = self.loop.times_for(self.items, scale.round_ns)

    def answer(self) -> Any:
        found = self.tree.match(self.usual_key)[0]
        if self.call != "match with its slots":
            return found
        own = [int(slot) for slot in self.tree.once(self.call, key=self.key)]
        return [found, len(own), own[:3], own[-3:]]

    def round(self) -> dict[str, float]:
        row = self.rows[0]
        return {row.name: self.loop(self.items, self.times) / (self.length if row.unit == "ns" else 1000)}


class Beside(Work):
    """A hot match, and beside it its ratio to another hot match of the same round."""

    def __init__(self, ratio: Row, first: HotMatch, second: HotMatch) -> None:
        super().__init__(first.rows[0], ratio)
        self.first = first
        self.second: HotMatch | None = second

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.first.setup(adapter, scale, rng)
        assert self.second is not None
        try:
            self.second.setup(adapter, scale, rng)
        except CannotDo:  # an index of larger pages: its figure stands without the ratio
            self.second = None

    def answer(self) -> Any:
        return self.first.answer()

    def round(self) -> dict[str, float]:
        figures = self.first.round()
        if self.second is not None:
            figures[self.rows[1].name] = next(iter(figures.values())) / next(iter(self.second.round().values()))
        return figures


class InsertAgain(Work):
    """What is cached already is inserted again, and again."""

    def __init__(self, row: Row, length: int) -> None:
        super().__init__(row)
        self.length = length

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.tree = adapter()
        item = self.tree.key(tokens(rng, self.length)), self.tree.values(slots(0, self.length))
        self.tree.insert(*item)
        self.found = self.tree.insert(*item)
        self.items = [item] * _AT_ONCE
        self.loop = self.tree.loop("insert", "key, values")
        self.times = self.loop.times_for(self.items, scale.round_ns)
        self.tree.forget_freed()

    def answer(self) -> Any:
        return self.found

    def round(self) -> dict[str, float]:
        taken = self.loop(self.items, self.times)
        self.tree.forget_freed()
        return {self.rows[0].name: taken / 1000}


class Resumed(Work):
    """A request whose context is cached goes on: only its new tokens are asked for, where the system can."""

    def __init__(self, row: Row, context: int, new: int) -> None:
        super().__init__(row)
        self.context, self.new = context, new

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.tree = adapter()
        run = tokens(rng, self.context + self.new)
        self.whole, context = self.tree.key(run), self.tree.key(run[: self.context])
        self.tree.insert(self.whole, self.tree.values(slots(0, len(run))))
        node = self.tree.match(context)[1]
        self.loop = self.tree.loop("match below a node", "whole, new, node")
        self.items = [(self.whole, self.tree.key(run[self.context :]), node)] * _AT_ONCE
        self.times = self.loop.times_for(self.items, scale.round_ns)

    def answer(self) -> Any:
        return self.tree.match(self.whole)[0]

    def round(self) -> dict[str, float]:
        return {self.rows[0].name: self.loop(self.items, self.times) / 1000}


Keys = Callable[[np.random.Generator, Scale], tuple[list[Tokens], list[Tokens]]]
"""Makes the keys to cache, and those to match."""


class ManyMatch(Work):
    """Different cached keys, matched in turn."""

    def __init__(self, row: Row, make: Keys) -> None:
        super().__init__(row)
        self.make = make

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.tree = adapter()
        cached, asked = self.make(rng, scale)
        first = 0
        for run in cached:
            self.tree.insert(self.tree.key(run), self.tree.values(slots(first, len(run))))
            first += len(run)
        self.items = [self.tree.key(run) for run in asked]
        self.loop = self.tree.loop("match")
        self.times = self.loop.times_for(self.items, scale.round_ns)

    def answer(self) -> Any:
        return sum(self.tree.match(key)[0] for key in self.items)

    def round(self) -> dict[str, float]:
        return {self.rows[0].name: self.loop(self.items, self.times) / 1000}


def prompts(rng: np.random.Generator, scale: Scale) -> tuple[list[Tokens], list[Tokens]]:
    """A system prompt of 2,048 tokens with ends of 256."""
    prompt = tokens(rng, 2048)
    keys = [np.concatenate((prompt, tokens(rng, 256))) for _ in range(scale.prompts)]
    return keys, keys


def nested(rng: np.random.Generator, scale: Scale) -> tuple[list[Tokens], list[Tokens]]:
    """Prefixes of 32, 64, … 2,048 tokens of one sequence, cached in this order."""
    run = tokens(rng, 2048)
    return [run[:end] for end in range(32, 2049, 32)], [run] * _AT_ONCE


def branched(rng: np.random.Generator, scale: Scale) -> tuple[list[Tokens], list[Tokens]]:
    """The same, with another end below each prefix, so that no tree can join them."""
    run = tokens(rng, 2048)
    ends = [np.concatenate((run[:end], tokens(rng, 32))) for end in range(32, 2048, 32)]
    return [run, *ends], [run] * _AT_ONCE


def children(rng: np.random.Generator, scale: Scale) -> tuple[list[Tokens], list[Tokens]]:
    """A prefix of 32 tokens with many children of 32 tokens; some of them are matched (`asked_children`)."""
    prefix = tokens(rng, 32)
    keys = []
    for first in rng.permutation(scale.children):
        end = tokens(rng, 32)
        end[0] = first  # every child another first token
        keys.append(np.concatenate((prefix, end)))
    return keys, keys[:: _step(scale)]


def asked_children(scale: Scale) -> int:
    """How many: about 1,000."""
    return len(range(0, scale.children, _step(scale)))


def _step(scale: Scale) -> int:
    return max(1, scale.children // 1000)


class FreshInsert(Work):
    """New ends below a cached prefix: a new cache each round, each end inserted once."""

    def __init__(self, row: Row, prefix: int, end: int, slots: Slots = slots) -> None:
        super().__init__(row)
        self.prefix, self.end, self.slots = prefix, end, slots

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.adapter = adapter
        tree = adapter()
        prefix = tokens(rng, self.prefix)
        self.known = tree.key(prefix), tree.values(slots(0, self.prefix))
        length = self.prefix + self.end
        self.items = []
        for number in range(scale.prompts):
            # The first token makes the end a new one.
            end = tokens(rng, self.end)
            end[0] = number
            key = tree.key(np.concatenate((prefix, end)))
            self.items.append((key, tree.values(self.slots(number * length, length))))
        self.round()

    def answer(self) -> Any:
        tree = self.adapter()
        if self.prefix:
            tree.insert(*self.known)
        return [tree.insert(*item) for item in self.items[:3]] + [tree.match(self.items[2][0])[0]]

    def round(self) -> dict[str, float]:
        tree = self.adapter()
        if self.prefix:
            tree.insert(*self.known)
        return {self.rows[0].name: tree.loop("insert", "key, values")(self.items) / 1000}


class Locks(Work):
    """Lock the ends of sixteen sequences that none has locked, then unlock them.

    Each sequence is ``depth`` prefixes of 32, 64, … tokens, cached in this order; ``branches`` puts another end below
    each, so that no tree can join them.
    """

    def __init__(self, lock: Row, unlock: Row, depth: int, branches: bool = False) -> None:
        super().__init__(lock, unlock)
        self.depth, self.branches = depth, branches

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        tree = adapter()
        length = 32 * self.depth
        self.nodes = []
        self.lengths = []
        for _ in range(16):
            run = tokens(rng, length)
            for end in range(32, length + 1, 32):
                tree.insert(tree.key(run[:end]), tree.values(slots(0, end)))
                if self.branches and end < length:
                    branch = np.concatenate((run[:end], tokens(rng, 32)))
                    tree.insert(tree.key(branch), tree.values(slots(0, len(branch))))
            found, node = tree.match(tree.key(run))
            self.nodes.append(node)
            self.lengths.append(found)
        self.lock, self.unlock = tree.loop("lock", "node"), tree.loop("unlock", "handle")
        self.lock(self.nodes)
        self.protected = [tree.protected()]
        self.unlock(list(self.lock.kept))
        self.protected.append(tree.protected())
        self.passes = 1
        began = self.round()
        per_pass = 16_000 * sum(began.values())
        self.passes = max(1, min(2_000, int(scale.round_ns / max(per_pass, 1.0))))

    def answer(self) -> Any:
        return [self.lengths, self.protected]

    def round(self) -> dict[str, float]:
        taken = [0.0, 0.0]
        for _ in range(self.passes):
            taken[0] += self.lock(self.nodes)
            taken[1] += self.unlock(list(self.lock.kept))
        return {row.name: each / self.passes / 1000 for row, each in zip(self.rows, taken, strict=True)}


TURNS, UP_TO = (200, 600), 8192
"""How many tokens a turn adds to a conversation, at least and at most, and where it ends."""
TURN = sum(TURNS) // 2


class Chat(Work):
    """Conversations that grow by 200–600 tokens a turn up to 8,192, each turn matched and then inserted.

    The resumed rows ask for the new tokens alone, below the node of the turn before; a system that has no such call
    asks for the whole key there too.
    """

    def setup(self, adapter: type[Adapter], scale: Scale, rng: np.random.Generator) -> None:
        self.adapter = adapter
        self.turns: list[list[tuple[int, int, int]]] = []  # for each turn: conversation, old length, new length
        self.texts = [tokens(rng, UP_TO) for _ in range(scale.conversations)]
        lengths = [0] * scale.conversations
        while min(lengths) < UP_TO:
            turn = []
            for who, old in enumerate(lengths):
                if old < UP_TO:
                    lengths[who] = min(UP_TO, old + int(rng.integers(*TURNS, endpoint=True)))
                    turn.append((who, old, lengths[who]))
            self.turns.append(turn)
        self.resumes = "match below a node" in adapter.calls and "insert below a node" in adapter.calls

    def answer(self) -> Any:
        """A few turns of one conversation, with whole keys and, where there are such calls, with the new tokens."""
        tree = self.adapter()
        found = []
        for turn in self.turns[:4]:
            who, _, new = turn[0]
            key = tree.key(self.texts[who][:new])
            found.append([tree.match(key)[0], tree.insert(key, tree.values(slots(0, new)))])
        return [found, self._resumed_answer() if self.resumes else found]

    def _resumed_answer(self) -> list[list[int]]:
        tree = self.adapter()
        node = tree.match(tree.key(np.zeros(0, np.int64)))[1]
        insert = tree.loop("insert below a node", "new, values, node")
        found = []
        for turn in self.turns[:4]:
            who, old, new = turn[0]
            key, values = tree.key(self.texts[who][old:new]), tree.values(slots(old, new - old))
            found.append([tree.once("match below a node", new=key, node=node).length, old])
            insert([(key, values, node)])
            (node,) = insert.kept
        return found

    def round(self) -> dict[str, float]:
        match, insert = self._whole()
        again = self._resumed() if self.resumes else (match, insert)
        return dict(zip((row.name for row in self.rows), (match, insert, *again), strict=True))

    def _whole(self) -> tuple[float, float]:
        tree = self.adapter()
        match, insert = tree.loop("match"), tree.loop("insert", "key, values")
        taken, calls = [0.0, 0.0], 0
        for turn in self.turns:
            items = [(tree.key(self.texts[who][:new]), tree.values(slots(who << 13, new))) for who, _, new in turn]
            taken[0] += match([key for key, _ in items]) * len(turn)
            taken[1] += insert(items) * len(turn)
            calls += len(turn)
        return taken[0] / calls / 1000, taken[1] / calls / 1000

    def _resumed(self) -> tuple[float, float]:
        tree = self.adapter()
        match = tree.loop("match below a node", "new, values, node")
        insert = tree.loop("insert below a node", "new, values, node")
        root = tree.match(tree.key(np.zeros(0, np.int64)))[1]
        nodes = [root] * len(self.texts)
        taken, calls = [0.0, 0.0], 0
        for turn in self.turns:
            items = [
                (
                    tree.key(self.texts[who][old:new]),
                    tree.values(slots((who << 13) + old, new - old)),
                    nodes[who],
                )
                for who, old, new in turn
            ]
            taken[0] += match(items) * len(turn)
            taken[1] += insert(items) * len(turn)
            for (who, _, _), node in zip(turn, list(insert.kept), strict=True):
                nodes[who] = node
            calls += len(turn)
        return taken[0] / calls / 1000, taken[1] / calls / 1000
