"""How long a step takes on a GPU: a roofline with stated efficiencies. Published figures, no measurement of ours.

Sources: NVIDIA's data sheets of the A100 80GB SXM and the H100 SXM (dense bf16 rate and memory bandwidth); the model
cards and configurations of Llama 3.2 1B, Llama 3.1 8B and 70B. The efficiencies are assumptions, in the range that
engines are reported to reach: half of the peak rate in prefill, three quarters of the bandwidth in decoding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

COMPUTE_EFFICIENCY = 0.5
BANDWIDTH_EFFICIENCY = 0.75
LAUNCH_SECONDS = 0.0005
"""What a step takes whatever is in it, with CUDA graphs."""
_BYTES = 2  # of a weight, key or value in bf16
_ROOM = 0.85  # of the memory, for weights and pool


@dataclass(frozen=True)
class Gpu:
    """``rate`` in operations a second, ``bandwidth`` in bytes a second, ``memory`` in bytes."""

    name: str
    rate: float
    bandwidth: float
    memory: float


@dataclass(frozen=True)
class Llm:
    """``kv_width``: numbers of a key, or a value, of one token in one layer. ``gpus``: how many share it."""

    name: str
    parameters: float
    layers: int
    hidden: int
    kv_width: int
    gpus: int = 1

    @property
    def kv_bytes(self) -> int:
        """Of one token."""
        return 2 * self.layers * self.kv_width * _BYTES


GPUS = {gpu.name: gpu for gpu in (Gpu("A100", 312e12, 2.039e12, 80e9), Gpu("H100", 989e12, 3.35e12, 80e9))}
LLMS = {
    llm.name: llm
    for llm in (
        Llm("1B", 1.24e9, 16, 2048, 512),
        Llm("8B", 8.03e9, 32, 4096, 1024),
        Llm("70B", 70.6e9, 80, 8192, 1024, gpus=8),
    )
}


def pool_tokens(gpu: Gpu, llm: Llm) -> int:
    """Tokens whose keys and values fit beside the weights."""
    return int((gpu.memory * llm.gpus * _ROOM - llm.parameters * _BYTES) / llm.kv_bytes)


def step_seconds(gpu: Gpu, llm: Llm, prefills: Iterable[tuple[int, int]], decodes: Iterable[int]) -> float:
    """One forward pass. ``prefills``: new tokens and those before them; ``decodes``: tokens before the one made."""
    tokens, pairs, read = 0, 0.0, 0
    for new, before in prefills:
        tokens += new
        pairs += new * (before + new / 2)
        read += before + new
    for before in decodes:
        tokens += 1
        pairs += before
        read += before
    if tokens == 0:
        return 0.0
    work = 2 * llm.parameters * tokens + 4 * llm.layers * llm.hidden * pairs
    traffic = llm.parameters * _BYTES + read * llm.kv_bytes
    compute = work / (gpu.rate * llm.gpus * COMPUTE_EFFICIENCY)
    memory = traffic / (gpu.bandwidth * llm.gpus * BANDWIDTH_EFFICIENCY)
    return max(compute, memory) + LAUNCH_SECONDS
