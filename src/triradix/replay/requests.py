"""What a trace holds: requests, whose tokens are written down or follow from the ids of their segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from triradix.arguments import Namespace
from triradix.keys import Tokens

VOCABULARY = 128_000
"""Token ids lie below this: about the size of current vocabularies."""


class Segments(NamedTuple):
    """A text by the ids of its parts: equal ids are equal tokens, so shared segments are shared prefixes."""

    ids: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


Text: TypeAlias = Segments | Tokens


@dataclass(frozen=True)
class Request:
    """One prompt and its answer. The answer is part of the request, as if the model were deterministic."""

    prompt: Text
    output: Text
    extra_key: str | Namespace | None = None


@dataclass(frozen=True)
class Trace:
    """Requests in order of arrival. ``block_size``: tokens for each id of a block trace, None for others."""

    name: str
    requests: list[Request]
    block_size: int | None = None


def text_length(text: Text) -> int:
    return int(text.lengths.sum()) if isinstance(text, Segments) else len(text)


def text_tokens(text: Text) -> Tokens:
    """The tokens, uint32 and contiguous."""
    return expand(text) if isinstance(text, Segments) else text


def expand(segments: Segments) -> Tokens:
    """The tokens of segments: a fixed pseudo-random function of (id, position in the segment), in one pass of NumPy.

    About 5 ns a token; nothing is kept, so that the memory of a replay is the cache's.
    """
    ids, lengths = segments
    seeds = _mix64(ids.astype(np.uint64))
    starts = np.cumsum(lengths) - lengths
    position = np.arange(int(lengths.sum()), dtype=np.uint32) - np.repeat(starts.astype(np.uint32), lengths)
    word = position * np.uint32(0x9E3779B1)
    word += np.repeat(seeds.astype(np.uint32), lengths)
    word ^= word >> np.uint32(16)
    word *= np.uint32(0x7FEB352D)
    word ^= word >> np.uint32(15)
    # The second half of the seed: with 32 bits alone, some of 200,000 ids would mean the same tokens.
    word += np.repeat((seeds >> np.uint64(32)).astype(np.uint32), lengths)
    word *= np.uint32(0x846CA68B)
    word ^= word >> np.uint32(16)
    return ((word.astype(np.uint64) * np.uint64(VOCABULARY)) >> np.uint64(32)).astype(np.uint32)


def _mix64(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of SplitMix64: a bijection whose output bits depend on all input bits."""
    mixed = words + np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
