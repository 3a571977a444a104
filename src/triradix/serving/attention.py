"""Attention for a CPU that computes what is new, and no more.

SGLang's own for PyTorch pads the queries to the whole sequence: a cached prefix then saves none of attention's work,
and no cache could show in the time to the first token.
"""

from __future__ import annotations

from typing import Any


def compute_only_what_is_new() -> None:
    """Put it into SGLang's ``torch_native`` attention, in this process. For plain causal attention only."""
    from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend

    TorchNativeAttnBackend._run_sdpa_forward_extend = _extend


def _extend(
    backend: Any,
    query: Any,
    output: Any,
    k_cache: Any,
    v_cache: Any,
    req_to_token: Any,
    req_pool_indices: Any,
    seq_lens: Any,
    extend_prefix_lens: Any,
    extend_seq_lens: Any,
    encoder_lens: Any = None,
    scaling: float | None = None,
    enable_gqa: bool = False,
    causal: bool = False,
    is_cross_attn: bool = False,
    sliding_window_size: int | None = None,
) -> Any:
    """``query`` and ``output``: the new tokens of all requests in a row, by head and by width of a head."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    if encoder_lens is not None or is_cross_attn or not causal or sliding_window_size not in (None, -1):
        raise NotImplementedError("only plain causal attention")
    begin = 0
    for row, before, new in zip(
        req_pool_indices.tolist(), extend_prefix_lens.tolist(), extend_seq_lens.tolist(), strict=True
    ):
        slots = req_to_token[row, : before + new]
        keys, values = (pool[slots].to(query.dtype).transpose(0, 1)[None] for pool in (k_cache, v_cache))
        mask = None
        if before and new > 1:
            # The new token at i sees all that was there, and the new ones up to itself.
            mask = torch.ones(new, before + new, dtype=torch.bool).tril(diagonal=before)
        attended = scaled_dot_product_attention(
            query[begin : begin + new].transpose(0, 1)[None],
            keys,
            values,
            attn_mask=mask,
            is_causal=not before and new > 1,
            scale=scaling,
            enable_gqa=enable_gqa,
        )
        output[begin : begin + new] = attended[0].transpose(0, 1)
        begin += new
    return output
