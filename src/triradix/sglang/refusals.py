"""What this backend cannot serve is refused when the engine starts, in one sentence that says what to do instead."""

from __future__ import annotations

from typing import Any

from sglang.srt.runtime_context import get_disagg, get_parallel

from triradix.config import POLICIES

_ELSE = "leave out --radix-cache-backend"


def refuse(context: Any) -> None:
    """ValueError if the engine is to do something that the cache could not follow.

    ``context`` is SGLang's ``TreeCacheBuildContext``.
    """
    options, parameters = context.server_args, context.params
    reasons = (
        (context.is_hybrid_swa, f"a model with sliding-window layers: {_ELSE}"),
        (context.is_hybrid_ssm, f"a model with Mamba or other recurrent layers: {_ELSE}"),
        (hasattr(parameters.req_to_token_pool, "req_to_c128_sidecar"), f"C128 sidecar pages: {_ELSE}"),
        (context.enable_hierarchical_cache, "the tiers of --enable-hierarchical-cache: leave out one of the two"),
        (options.enable_lmcache, "--enable-lmcache, which is a cache of its own: leave out one of the two"),
        (options.enable_flexkv, "--enable-flexkv, which is a cache of its own: leave out one of the two"),
        (options.enable_streaming_session, "--enable-streaming-session: leave out one of the two"),
        (parameters.enable_session_radix_cache, "--enable-session-radix-cache: leave out one of the two"),
        (
            get_disagg().disaggregation_mode != "null",
            f"an engine that only prefills or only decodes (--disaggregation-mode), which is not tested: {_ELSE}",
        ),
        (get_parallel().attn_dcp_size > 1, "--dcp-size above 1, which is not tested: leave out one of the two"),
        (parameters.attn_cp_size > 1, "--attn-cp-size above 1, which is not tested: leave out one of the two"),
        (parameters.pp_size > 1, "--pp-size above 1, which is not tested: leave out one of the two"),
        (
            get_disagg().disaggregation_decode_retraction_backup == "host_pool",
            "retraction to a host pool: add --disaggregation-decode-retraction-backup cpu_tensor",
        ),
    )
    for given, reason in reasons:
        if given:
            raise ValueError(f"triradix does not serve {reason}")
    if not parameters.disable:
        slru_threshold(parameters)


def slru_threshold(parameters: Any) -> int:
    """Hits from which a page is protected under ``slru``, as SGLang was told.

    ``parameters`` is SGLang's ``CacheInitParams``. ValueError for a policy or an option of it that the trees lack.
    """
    policy = parameters.eviction_policy.lower()
    if policy not in POLICIES:
        raise ValueError(
            f"triradix does not evict by {policy!r}: give --radix-eviction-policy one of {', '.join(POLICIES)}"
        )
    given = dict(parameters.eviction_policy_config or {})
    threshold = given.pop("protected_threshold", 2) if policy == "slru" else 2
    if given:
        raise ValueError(
            f"--radix-eviction-policy-config has {', '.join(map(repr, given))}, which {policy} does not take here"
        )
    return int(threshold)
