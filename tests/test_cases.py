"""The tables of cases: small call sequences and their right answers, the same for every implementation.

``cases.json`` comes from reports about real caches, ``more_cases.json`` from the rules of the protocol, ``hashes.json``
holds golden digests. README.md describes the steps.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from implementations import Implementation

import triradix

FOLDER = Path(__file__).parent
CASES = [case for name in ("cases.json", "more_cases.json") for case in json.loads((FOLDER / name).read_text("utf-8"))]
HASHES = json.loads((FOLDER / "hashes.json").read_text("utf-8"))


def plain(value: Any) -> Any:
    """``{"range": [a, b]}`` written out."""
    if isinstance(value, dict) and set(value) == {"range"}:
        return list(range(*value["range"]))
    return value


def namespace(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def listed(value: Any) -> Any:
    """Tuples as lists, as JSON has them."""
    return [listed(item) for item in value] if isinstance(value, (list, tuple)) else value


def event(told: Any) -> dict[str, Any]:
    if isinstance(told, triradix.BlockStored):
        return {
            "stored": told.block_hashes,
            "parent": told.parent_block_hash,
            "token_ids": listed(told.token_ids),
            "extra_key": listed(told.extra_key),
        }
    if isinstance(told, triradix.BlockRemoved):
        return {"removed": told.block_hashes}
    assert isinstance(told, triradix.AllBlocksCleared)
    return {"cleared": True}


class Runner:
    def __init__(self, cache: Any) -> None:
        self.cache = cache
        self.named: dict[str, Any] = {}

    def step(self, step: dict[str, Any]) -> dict[str, Any]:
        """Do the step; the answers, under the names that a step may give expectations for."""
        answers: dict[str, Any] = getattr(self, step["op"])(step)
        return answers

    def node(self, name: str) -> Any:
        return self.named[name].node

    def keyed(self, step: dict[str, Any]) -> dict[str, Any]:
        arguments = {"key": plain(step["key"]), "extra_key": namespace(step.get("extra_key"))}
        if "start" in step:
            arguments["start"] = self.node(step["start"])
        return arguments

    def keep(self, step: dict[str, Any], result: Any) -> None:
        if "as" in step:
            self.named[step["as"]] = result

    def insert(self, step: dict[str, Any]) -> dict[str, Any]:
        more = {name: step[name] for name in ("priority", "inserted_len") if name in step}
        result = self.cache.insert(values=plain(step["values"]), **self.keyed(step), **more)
        self.keep(step, result)
        return {"prefix_len": result.prefix_len, "length": result.length}

    def match(self, step: dict[str, Any]) -> dict[str, Any]:
        result = self.cache.match_prefix(**self.keyed(step))
        self.keep(step, result)
        answers = {"length": result.length}
        if "indices" in step:
            answers["indices"] = result.indices.tolist()
        return answers

    def peek(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"returns": self.cache.peek_prefix(**self.keyed(step))}

    def batch(self, step: dict[str, Any]) -> dict[str, Any]:
        namespaces = step.get("extra_keys")
        return {
            "keys": [plain(key) for key in step["keys"]],
            "extra_keys": namespaces and [namespace(n) for n in namespaces],
            "threads": step.get("threads"),
        }

    def match_many(self, step: dict[str, Any]) -> dict[str, Any]:
        result = self.cache.match_prefix_many(**self.batch(step))
        return {
            "lengths": result.lengths.tolist(),
            "indices": result.indices.tolist(),
            "offsets": result.offsets.tolist(),
        }

    def peek_many(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"returns": self.cache.peek_prefix_many(**self.batch(step)).tolist()}

    def evict(self, step: dict[str, Any]) -> dict[str, Any]:
        result = self.cache.evict(step["num_tokens"])
        return {"freed": result.num_tokens, "indices": result.indices.tolist()}

    def evict_namespace(self, step: dict[str, Any]) -> dict[str, Any]:
        result = self.cache.evict_namespace(namespace(step["ns"]), step.get("num_tokens"))
        return {"freed": result.num_tokens, "indices": result.indices.tolist()}

    def lock(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"returns": self.cache.inc_lock_ref(self.node(step["node"]))}

    def unlock(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"returns": self.cache.dec_lock_ref(self.node(step["node"]))}

    def path(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"returns": self.cache.path_indices(self.node(step["node"]), step.get("from", 0)).tolist()}

    def sizes(self, step: dict[str, Any]) -> dict[str, Any]:
        cache = self.cache
        return {"returns": [cache.total_size(), cache.evictable_size(), cache.protected_size()]}

    def events(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"returns": [event(told) for told in self.cache.take_events()]}

    def reset(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"returns": self.cache.reset()}

    def hashes(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"returns": [digest.hex() for digest in self.cache.block_hashes(self.node(step["node"]))]}

    def all(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"returns": sorted(self.cache.all_indices().tolist())}

    def same(self, step: dict[str, Any]) -> dict[str, Any]:
        one, other = map(self.node, step["nodes"])
        assert (one != other) is not (one == other)
        assert one != other or hash(one) == hash(other)
        return {"returns": one == other}

    def length(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"returns": self.node(step["node"]).length}

    def indices(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"returns": self.named[step["result"]].indices.tolist()}

    def stats(self, step: dict[str, Any]) -> dict[str, Any]:
        stats = self.cache.stats()
        return {"returns": {name: stats[name] for name in step["returns"]}}


EXPECTATIONS = ("returns", "prefix_len", "length", "indices", "freed", "lengths", "offsets")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(implementation: Implementation, case: dict[str, Any]) -> None:
    runner = Runner(implementation.create(**case["config"]))
    for number, step in enumerate(case["steps"]):
        raised, answers = None, {}
        try:
            answers = runner.step(step)
        except Exception as error:
            raised = error
        if type(raised).__name__ != step.get("raises", "NoneType"):
            raise AssertionError(f"step {number}, {step}: raised {raised!r}") from raised
        if raised is None:
            expected = {name: plain(step[name]) for name in EXPECTATIONS if name in step}
            assert {name: answers[name] for name in expected} == expected, f"step {number}, {step}"
        runner.cache.check()


def test_case_ids_are_unique() -> None:
    ids = [case["id"] for case in CASES]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("golden", HASHES, ids=lambda golden: f"{golden['config']}, {golden['extra_key']}")
def test_golden_hashes(implementation: Implementation, golden: dict[str, Any]) -> None:
    cache = implementation.create(**golden["config"], enable_kv_cache_events=True)
    quiet = implementation.create(**golden["config"])
    for one in (cache, quiet):
        node = one.insert(golden["key"], golden["key"], namespace(golden["extra_key"])).node
        assert [digest.hex() for digest in one.block_hashes(node)] == golden["digests"]
    (stored,) = cache.take_events()
    assert stored.block_hashes == golden["event_hashes"]
    assert cache.evict(10**6).num_tokens == len(golden["digests"]) * golden["config"]["page_size"]
    (removed,) = cache.take_events()
    assert removed.block_hashes == golden["event_hashes"][::-1]
