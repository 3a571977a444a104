"""How SGLang's engine is started here: on a CPU, in 32-bit floats, with what a CPU can run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

BACKENDS: dict[str, dict[str, Any]] = {
    "none": {"disable_radix_cache": True},
    "sglang-python": {},
    "sglang-rust": {},
    "triradix-reference": {"radix_cache_backend": "triradix-reference"},
    "triradix-cython": {"radix_cache_backend": "triradix-cython"},
    "triradix-rust": {"radix_cache_backend": "triradix-rust"},
}
"""The caches that are compared, and how the engine is told."""


def engine_options(model: Path, pool_tokens: int, page_size: int = 1, **more: Any) -> dict[str, Any]:
    """Arguments of ``sglang.Engine``; as flags they are those of ``sglang.launch_server``."""
    options = {
        "model_path": str(model),
        "device": "cpu",
        "dtype": "float32",
        "attention_backend": "torch_native",
        "sampling_backend": "pytorch",
        "grammar_backend": "none",
        "disable_cuda_graph": True,
        "skip_server_warmup": True,
        "max_total_tokens": pool_tokens,
        "max_running_requests": 32,
        "context_length": 8192,
        "chunked_prefill_size": 2048,
        "random_seed": 1,
        "page_size": page_size,
    }
    return options | more


def variables_of(cache: str) -> dict[str, str]:
    """Environment variables that choose one of `BACKENDS`, beside its options."""
    if cache in ("sglang-python", "sglang-rust"):
        return {"SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND": cache.removeprefix("sglang-")}
    return {}
