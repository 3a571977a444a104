"""What is refused, and that it is refused at start in a sentence of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.registry import get_radix_cache_factory, registered_radix_cache_backends

import triradix
from triradix import sglang as plugin
from triradix.sglang import refusals

BACKENDS = [f"triradix-{implementation}" for implementation in triradix.IMPLEMENTATIONS]


def context(**changes: Any) -> SimpleNamespace:
    """A build context of an engine that we serve, but for the changes."""
    options = {"enable_lmcache": False, "enable_flexkv": False, "enable_streaming_session": False}
    about = {"is_hybrid_swa": False, "is_hybrid_ssm": False, "enable_hierarchical_cache": False}
    parameters = {"disable": False, "req_to_token_pool": None, "token_to_kv_pool_allocator": None, "page_size": 1}
    for name, value in changes.items():
        next((group for group in (options, about) if name in group), parameters)[name] = value
    return SimpleNamespace(**about, server_args=SimpleNamespace(**options), params=CacheInitParams(**parameters))


@pytest.fixture(autouse=True)
def _registered() -> None:
    plugin.register()
    plugin.register()  # SGLang may call it more than once in a process


@pytest.mark.parametrize("name", BACKENDS)
def test_backends_are_registered_and_build(name: str) -> None:
    assert name in registered_radix_cache_backends()
    factory = get_radix_cache_factory(name)
    assert factory is not None
    assert factory(context()).total_size() == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"is_hybrid_swa": True}, "sliding-window layers"),
        ({"is_hybrid_ssm": True}, "Mamba"),
        ({"enable_hierarchical_cache": True}, "--enable-hierarchical-cache"),
        ({"enable_lmcache": True}, "--enable-lmcache"),
        ({"enable_flexkv": True}, "--enable-flexkv"),
        ({"enable_streaming_session": True}, "--enable-streaming-session"),
        ({"enable_session_radix_cache": True}, "--enable-session-radix-cache"),
        ({"req_to_token_pool": SimpleNamespace(req_to_c128_sidecar=None)}, "C128"),
        ({"attn_cp_size": 2}, "--attn-cp-size above 1"),
        ({"pp_size": 2}, "--pp-size above 1"),
        ({"eviction_policy": "tlru"}, "'tlru'.*one of lru, lfu"),
        ({"eviction_policy_config": {"protected_threshold": 3}}, "'protected_threshold', which lru does not take"),
        ({"eviction_policy": "slru", "eviction_policy_config": {"threshold": 3}}, "'threshold', which slru"),
    ],
)
def test_refused(changes: dict[str, Any], says: str) -> None:
    factory = get_radix_cache_factory(BACKENDS[0])
    assert factory is not None
    with pytest.raises(ValueError, match=says):
        factory(context(**changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"disaggregation_decode_retraction_backup": "host_pool"}, "cpu_tensor"),
        ({"disaggregation_mode": "prefill"}, "only prefills or only decodes"),
        ({"disaggregation_mode": "decode"}, "--disaggregation-mode"),
    ],
)
def test_disaggregation_is_refused(changes: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"disaggregation_mode": "null", "disaggregation_decode_retraction_backup": "cpu_tensor"}
    monkeypatch.setattr(refusals, "get_disagg", lambda: SimpleNamespace(**{**options, **changes}))
    with pytest.raises(ValueError, match=says):
        refusals.refuse(context())


def test_decode_context_parallelism_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "get_parallel", lambda: SimpleNamespace(attn_dcp_size=2))
    with pytest.raises(ValueError, match="--dcp-size above 1"):
        refusals.refuse(context())


def test_the_threshold_of_slru(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = context(eviction_policy="SLRU", eviction_policy_config={"protected_threshold": 3}).params
    assert refusals.slru_threshold(parameters) == 3


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "version", lambda name: "0.5.24")
    factory = get_radix_cache_factory(BACKENDS[0])
    assert factory is not None
    with pytest.raises(RuntimeError, match=r"works with SGLang 0\.5\.23, and this is 0\.5\.24"):
        factory(context())
