"""A real trace, made small enough for a tiny model on a CPU: fewer conversations, and shorter blocks."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from triradix.replay.requests import Request, Segments, Trace, expand, text_length, text_tokens
from triradix.serving.model import VOCABULARY

PROMPT_FACTOR, ANSWER_FACTOR = 16, 64
"""By how much prompts and answers are shorter than in the trace."""
LONGEST = 8_000
"""Tokens of a prompt: what goes beyond is cut."""
_SPECIAL = 4


def scaled_rows(trace: Trace, count: int, seed: int) -> list[dict[str, Any]]:
    """``count`` requests of the trace in its order: ``input_ids`` and ``output_len``, as the client reads them.

    Whole conversations, drawn at random, so that as much is shared as in the trace: the first requests in a row belong
    to as many conversations as there are users, and share next to nothing.
    """
    return [
        {
            "input_ids": _shorter(request),
            "output_len": max(1, text_length(request.output) // ANSWER_FACTOR),
        }
        for request in drawn(trace.requests, count, seed)
    ]


def drawn(requests: Sequence[Request], count: int, seed: int) -> list[Request]:
    """Conversations are known by their first two blocks (the first one is often everybody's system prompt)."""
    families: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index, request in enumerate(requests):
        prompt = request.prompt
        # A trace of tokens does not say who is whose: there each request is a conversation of its own.
        families[tuple(prompt.ids[:2].tolist()) if isinstance(prompt, Segments) else (index, None)].append(index)
    names = sorted(families)
    random.Random(seed).shuffle(names)
    chosen: list[int] = []
    for name in names:
        chosen += families[name]
        if len(chosen) >= count:
            break
    return [requests[index] for index in sorted(chosen[:count])]


def _shorter(request: Request) -> list[int]:
    """The prompt in words of the model, as much shorter in each of its blocks: what was shared still is."""
    prompt = request.prompt
    if isinstance(prompt, Segments):
        tokens = expand(Segments(prompt.ids, np.maximum(1, prompt.lengths // PROMPT_FACTOR)))
    else:
        tokens = text_tokens(prompt)[: max(1, text_length(prompt) // PROMPT_FACTOR)]
    return [int(token) % (VOCABULARY - _SPECIAL) + _SPECIAL for token in tokens[:LONGEST]]
