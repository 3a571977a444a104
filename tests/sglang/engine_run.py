"""One engine, in a process of its own: the same greedy prompts in several ways. Prints what came out as JSON.

    python engine_run.py MODEL '{"pool_tokens": 20000, "page_size": 1, ...}'   # arguments of `engine_options`

The engine itself checks at every step that available + evictable + protected + what requests hold is the whole pool,
and that no page has two owners: it dies if not.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from triradix.serving.engine import engine_options
from triradix.serving.model import VOCABULARY

GREEDY = {"temperature": 0, "max_new_tokens": 12, "ignore_eos": True}


def prompts(count: int = 16) -> list[list[int]]:
    """Behind four shared beginnings of 300 tokens."""
    rng = random.Random(7)

    def words(length: int) -> list[int]:
        return [rng.randrange(4, VOCABULARY) for _ in range(length)]

    beginnings = [words(300) for _ in range(4)]
    return [rng.choice(beginnings) + words(rng.randrange(10, 80)) for _ in range(count)]


def hashed(answer: Any) -> str:
    return hashlib.sha256(json.dumps(list(answer["output_ids"])).encode()).hexdigest()[:8]


def gap(answer: Any) -> float:
    """How far the best token was ahead of the second, where it was least: a smaller gap is decided by rounding."""
    best_two = answer["meta_info"]["output_top_logprobs"]
    return float(min(first[0] - second[0] for first, second in best_two))


def run(engine: Any, with_gaps: bool) -> dict[str, Any]:
    from sglang.srt.managers.io_struct import GenerateReqInput

    texts = prompts()
    logprobs = {"return_logprob": True, "top_logprobs_num": 2} if with_gaps else {}

    def ask(inputs: Any, **more: Any) -> Any:
        request = GenerateReqInput(input_ids=inputs, sampling_params=dict(GREEDY), **more)
        answer = engine.tokenizer_manager.generate_request(request, None)
        return engine.loop.run_until_complete(anext(answer))

    def cached(answers: list[Any]) -> int:
        return sum(answer["meta_info"]["cached_tokens"] for answer in answers)

    result: dict[str, Any] = {}
    one_by_one = [ask(text, **logprobs) for text in texts]
    result["one by one"], result["cached"] = [hashed(answer) for answer in one_by_one], cached(one_by_one)
    flush(engine)
    result["after a flush"] = ask(texts[0])["meta_info"]["cached_tokens"]
    # At once, an adapter's and others' side by side: neither may be handed what the other has computed.
    at_once = ask(texts, extra_key=["" if index % 3 else "adapter" for index in range(len(texts))])
    result["at once"] = [hashed(answer) for answer in at_once]
    alone = [ask(texts[1], **names) for names in ({"extra_key": "another"}, {"cache_salt": "tenant"})]
    again = [ask(texts[1], **names) for names in ({"extra_key": "another"}, {"cache_salt": "tenant"})]
    result["namespaces"], result["namespaces, again"] = cached(alone), cached(again)
    # Turns of a conversation: each prompt is the one before with its answer.
    turn, turns = texts[1][:200], []
    for _ in range(3):
        turns.append(ask(turn, **logprobs))
        turn = turn + list(turns[-1]["output_ids"]) + texts[2][:40]
    result["turns"], result["cached in turns"] = [hashed(answer) for answer in turns], cached(turns)
    if with_gaps:
        result["gaps"] = {"prompts": [gap(answer) for answer in one_by_one], "turns": [gap(answer) for answer in turns]}
    time.sleep(0.3)  # idle: the engine looks for leaks
    flush(engine)
    return result


def flush(engine: Any) -> None:
    """The engine refuses while it still tidies up after the last answer."""
    for _ in range(100):
        if engine.flush_cache().success:
            return
        time.sleep(0.1)
    raise RuntimeError("the engine is never idle")


def main() -> None:
    import sglang

    # Watches every step, and every page.
    os.environ["SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_BUSY"] = "1"
    os.environ["SGLANG_CHECK_KV_PAGE_INVARIANTS"] = "1"
    options = engine_options(Path(sys.argv[1]), **json.loads(sys.argv[2]))
    engine = sglang.Engine(**options, log_level="warning")
    try:
        result = run(engine, with_gaps=options.get("disable_radix_cache", False))
        print("RESULT", json.dumps(result), flush=True)
    finally:
        engine.shutdown()


if __name__ == "__main__":
    main()
