"""SGLang's own unit tests of its radix cache, run against ours. They come from a checkout of SGLang, never from here.

    TRIRADIX_SGLANG_TESTS=…/test/registered/unit/mem_cache make test-sglang ARGS="-k theirs"

names a file of them, or a folder that holds some, of about the version that is installed. A test addresses the
interface if it makes a `RadixCache`. What fails on ours either fails on SGLang's own tree too, because it asks for what
this version has no more, or has not yet; or it stands in `DEVIATIONS` with its reason.
"""

from __future__ import annotations

import ast
import importlib
import io
import os
import unittest
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pytest
from sglang.srt.mem_cache.base_prefix_cache import MatchPrefixParams, MatchResult
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.radix_cache import RadixCache

import triradix
from triradix.sglang.cache import TriradixCache

THEIRS = "TRIRADIX_SGLANG_TESTS"
FILES = "test_radix_cache*unit*.py"
_MADE = "RadixCache"

_HANDLE = "looks into the nodes of the tree: one of ours is a handle, with no key, no children and no hashes in it"
_TAIL = (
    "ours evicts page by page from the tail and names the blocks in that order; theirs from the front of a whole node"
)
DEVIATIONS = {
    "TestRadixCache.test_init_variations": _HANDLE,
    "TestRadixCache.test_hash_value_storage": _HANDLE,
    "TestRadixCache.test_hash_value_split": _HANDLE,
    "TestRadixCache.test_cache_salt_event_hashes_are_preserved_across_node_split": _HANDLE,
    "TestRadixCache.test_kv_cache_events_with_eviction": _TAIL,
}
"""By the test's name: why ours does not do what it asks for, and SGLang's own tree does."""


class Matched:
    """A match, also with what SGLang had in it before 0.5.22: the slots themselves, which are now asked for by node."""

    def __init__(self, cache: Any, result: MatchResult) -> None:
        self._cache, self._result = cache, result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)

    @property
    def device_indices(self) -> Any:
        return self._cache.path_device_indices(self._result.last_device_node)


class Made:
    """How the tests make a cache, and what they call by an older name."""

    def match_prefix(self, params: MatchPrefixParams) -> Any:
        return Matched(self, super().match_prefix(params))  # type: ignore[misc]

    @property
    def enable_kv_cache_events(self) -> bool:
        return bool(self.kv_events.enabled)  # type: ignore[attr-defined]

    @classmethod
    def create_simulated(cls, disable: bool = False, mock_allocator: Any = None, **options: Any) -> Any:
        if isinstance(mock_allocator, Mock):
            mock_allocator.size = 0  # a number in every real one
        params = CacheInitParams(
            disable=disable,
            req_to_token_pool=None,
            token_to_kv_pool_allocator=mock_allocator,
            page_size=options.pop("page_size", 1),
            **options,
        )
        return cls(params)  # type: ignore[call-arg]


class Theirs(Made, RadixCache):
    pass


def ours(implementation: str) -> type:
    class Ours(Made, TriradixCache):
        def __init__(self, params: CacheInitParams) -> None:
            super().__init__(params, implementation)

    return Ours


def files() -> list[Path]:
    path = Path(os.environ[THEIRS])
    found = [path] if path.is_file() else sorted(path.rglob(FILES))
    if not found:
        raise FileNotFoundError(f"{path} has none of SGLang's tests of its radix cache ({FILES})")
    return found


def load(path: Path, cache: type) -> ModuleType:
    """Run the file, with ``cache`` for `RadixCache`. What this SGLang does not have is an empty class."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    module = ModuleType(path.stem)
    for node in list(tree.body):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sglang"):
            tree.body.remove(node)
            for name in node.names:
                setattr(module, name.asname or name.name, found(node.module or "", name.name))
    tree.body = [node for node in tree.body if not registers(node)]
    setattr(module, _MADE, cache)
    exec(compile(tree, str(path), "exec"), vars(module))
    return module


def found(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except (AttributeError, ImportError):
        return type(name, (), {})


def registers(node: ast.stmt) -> bool:
    """With SGLang's CI, which is nothing to us."""
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.startswith("register_")


def named_tests() -> Iterator[tuple[str, Path]]:
    """Names of those that make a cache, as ``TestClass.test_name``."""
    for path in files():
        for made in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(made, ast.ClassDef):
                for test in made.body:
                    named = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
                    if isinstance(test, ast.FunctionDef) and test.name.startswith("test_") and _MADE in named:
                        yield f"{made.name}.{test.name}", path


TESTS = dict(named_tests())


def failure(name: str, made: type) -> str | None:
    """What went wrong in the test with this cache, None if nothing did."""
    case, _, method = name.partition(".")
    result = unittest.TextTestRunner(stream=io.StringIO()).run(getattr(load(TESTS[name], made), case)(method))
    assert result.testsRun == 1 and not result.skipped
    return None if result.wasSuccessful() else "\n".join(text for _, text in result.failures + result.errors)


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("implementation", triradix.IMPLEMENTATIONS)
def test_theirs(implementation: str, name: str) -> None:
    said, of_this_version = failure(name, ours(implementation)), failure(name, Theirs) is None
    if name in DEVIATIONS and of_this_version:
        assert said is not None, "it passes: it is no deviation any more"
    else:
        assert said is None or not of_this_version, said


def test_they_are_many() -> None:
    """A file of another kind, or for another version, would pass for want of tests."""
    passed = [name for name in TESTS if failure(name, Theirs) is None]
    assert len(passed) >= 10 and len(passed) > len(TESTS) / 2
