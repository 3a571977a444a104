"""Built-in workloads: seeded, made on the spot, with the figures that others published of theirs.

Lengths are log-normal around the published means. Where a figure is not published, the comment says "chosen".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from triradix.arguments import Namespace
from triradix.replay.requests import Request, Segments, Trace

_LARGEST = 16  # no length is longer than this many means


class _Source:
    """Random lengths, and segments that no other text has."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self._next_id = (seed & 0xFFFF) << 40

    def length(self, mean: float, sigma: float = 0.8) -> int:
        drawn = self.rng.lognormal(np.log(mean) - sigma * sigma / 2, sigma)
        return int(min(max(round(drawn), 1), _LARGEST * mean))

    def segment(self, length: int) -> tuple[int, int]:
        self._next_id += 1
        return (self._next_id, length)

    def zipf(self, n: int, exponent: float) -> Callable[[], int]:
        """A draw of 0 … n − 1 with probabilities ∝ 1 / (k + 1)^exponent."""
        bounds = np.cumsum(1.0 / np.arange(1, n + 1) ** exponent)
        return lambda: int(np.searchsorted(bounds, self.rng.random() * bounds[-1]))


_Parts = list[tuple[int, int]]


def _text(parts: _Parts) -> Segments:
    ids, lengths = zip(*parts, strict=True)
    return Segments(np.array(ids, np.int64), np.array(lengths, np.int64))


def chat(source: _Source) -> Iterator[Request]:
    """Conversations of a public chat service; each turn sends everything that was said before.

    LMSYS-Chat-1M (Zheng et al., ICLR 2024, arXiv:2309.11998, table 1): 2.0 turns a conversation, 69.5 tokens a prompt,
    214.5 tokens an answer. The number of turns is geometric; 256 conversations go on at a time (both chosen).
    """
    histories: list[_Parts] = [[] for _ in range(256)]
    while True:
        who = int(source.rng.integers(len(histories)))
        prompt = [*histories[who], source.segment(source.length(69.5))]
        answer = source.segment(source.length(214.5))
        yield Request(_text(prompt), _text([answer]))
        ends = source.rng.random() < 1 / 2.0
        histories[who] = [] if ends else [*prompt, answer]


def agent(source: _Source) -> Iterator[Request]:
    """Coding agents in a loop: every step sends the whole context again, with the last tool's result at its end.

    Codex on SWE-bench Pro, 610 sessions (vLLM blog, "Serving Agentic Workloads at Scale with vLLM x Mooncake",
    6 May 2026): a median of 33 steps, some 80,000 tokens of context at step 30, 131 input tokens to one output token,
    94.2 % of the input seen before. Hence 2,300 new tokens a step, 340 of them output. Chosen: one system prompt with
    tools of 8,000 tokens for all, tasks of 1,500, the spread of the lengths, and 12 agents at a time.
    """
    tools = source.segment(8_000)
    contexts: list[_Parts] = [[] for _ in range(12)]
    steps_left = [0] * len(contexts)
    while True:
        who = int(source.rng.integers(len(contexts)))
        if steps_left[who] == 0:
            steps_left[who] = source.length(33 * np.exp(0.4**2 / 2), 0.4)  # median 33
            contexts[who] = [tools, source.segment(source.length(1_500))]
        else:
            contexts[who].append(source.segment(source.length(1_960)))
        prompt = list(contexts[who])
        answer = source.segment(source.length(340))
        yield Request(_text(prompt), _text([answer]))
        contexts[who].append(answer)
        steps_left[who] -= 1


def shared_prompt(source: _Source) -> Iterator[Request]:
    """Programs that call an API: a long system prompt that many requests share, a short question, a short answer.

    ToolBench as measured for Preble (Srivatsa et al., ICLR 2025, arXiv:2407.00023, table 1): prompts of 1,835 tokens,
    85 % of them shared with others, answers of 43. Chosen: 500 system prompts, used as Zipf's law says (exponent 1.0).
    """
    prompts = [source.segment(source.length(0.85 * 1_835, 0.4)) for _ in range(500)]
    pick = source.zipf(len(prompts), 1.0)
    while True:
        question = source.segment(source.length(0.15 * 1_835))
        yield Request(_text([prompts[pick()], question]), _text([source.segment(source.length(43))]))


def rag(source: _Source) -> Iterator[Request]:
    """Questions answered from retrieved documents, which stand before the question in order of relevance.

    RAGCache (Jin et al., 2024, arXiv:2404.12457): 3 % of the documents take 60 % of the requests; they add 1,000 tokens
    and more to a question of 100. Chosen: 5,000 documents, two a question, instructions of 200 tokens, answers of 100.
    """
    instructions = source.segment(200)
    documents = [source.segment(source.length(1_000, 0.5)) for _ in range(5_000)]
    popular = len(documents) * 3 // 100

    def retrieve() -> int:
        wanted = source.rng.random() < 0.6
        return int(source.rng.integers(popular) if wanted else source.rng.integers(popular, len(documents)))

    while True:
        first, second = retrieve(), retrieve()
        question = source.segment(source.length(100))
        parts = [instructions, documents[first], *([documents[second]] if second != first else []), question]
        yield Request(_text(parts), _text([source.segment(source.length(100))]))


def mixed(source: _Source) -> Iterator[Request]:
    """All four on one engine, each with its own adapter and so its own namespace.

    The shares are chosen: 40 % chat, 30 % shared prompts, 20 % RAG, 10 % agents.
    """
    kinds: list[tuple[float, Namespace, Iterator[Request]]] = [
        (0.4, (None, None), chat(source)),
        (0.7, ("shared-prompt", None), shared_prompt(source)),
        (0.9, ("rag", None), rag(source)),
        (1.0, ("agent", None), agent(source)),
    ]
    while True:
        drawn = source.rng.random()
        _, namespace, requests = next(kind for kind in kinds if drawn < kind[0])
        request = next(requests)
        yield Request(request.prompt, request.output, namespace)


WORKLOADS: dict[str, Callable[[_Source], Iterator[Request]]] = {
    "chat": chat,
    "agent": agent,
    "shared-prompt": shared_prompt,
    "rag": rag,
    "mixed": mixed,
}


def make_workload(name: str, requests: int, seed: int) -> Trace:
    """The first ``requests`` requests of a workload; equal arguments make equal requests."""
    return Trace(f"{name} workload (built in)", list(islice(WORKLOADS[name](_Source(seed)), requests)))
