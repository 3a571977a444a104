"""What the tests of the plugin share. They run where SGLang is installed: `make test-sglang`."""

from __future__ import annotations

import os

import pytest
from scheduler import MakeCache
from sglang.srt.mem_cache.base_prefix_cache import BasePrefixCache
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.radix_cache import RadixCache
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache
from sglang.srt.server_args import ServerArgs, set_global_server_args_for_scheduler

import triradix
from triradix.sglang.cache import TriradixCache

THEIRS = "TRIRADIX_SGLANG_TESTS"
collect_ignore = [] if os.environ.get(THEIRS) else ["test_theirs.py"]


def pytest_report_header() -> str:
    found = os.environ.get(THEIRS)
    return f"SGLang's own unit tests: {found or f'NOT RUN, {THEIRS} names no folder of them (see test_theirs.py)'}"


@pytest.fixture(scope="session", autouse=True)
def _configured() -> None:
    """SGLang's scheduler asks its published configuration for many a thing."""
    set_global_server_args_for_scheduler(ServerArgs(model_path="dummy", device="cpu"))


@pytest.fixture(params=triradix.IMPLEMENTATIONS)
def ours(request: pytest.FixtureRequest) -> MakeCache:
    """Makes our cache, of each implementation in turn."""
    return lambda params: TriradixCache(params, request.param)


@pytest.fixture
def theirs() -> MakeCache:
    """Makes SGLang's classic tree, in Python."""
    return lambda params: RadixCache(params)


@pytest.fixture
def default() -> MakeCache:
    """Makes what SGLang uses unless it is told otherwise: its tree in Rust."""

    def make(params: CacheInitParams) -> BasePrefixCache:
        params.tree_components, params.tree_core_backend = (ComponentType.FULL,), "rust"
        cache = UnifiedRadixCache(params)
        assert type(cache.tree_core).__name__ == "RustUnifiedTreeCore"
        return cache

    return make
