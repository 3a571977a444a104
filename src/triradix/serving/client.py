"""SGLang's own client, `sglang.bench_serving`, kept running over many runs: its imports take longer than a run.

Runs in the engine's environment. Each line of its input is a JSON list of bench_serving's flags. Says ``ready`` once,
and after each run ``done``, or ``failed: `` and why. The dataset ``custom`` is a file of ours: token ids and lengths of
answers, in order.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any


class Rows:
    """Stands for bench_serving's dataset ``custom``: requests by token ids, in the order of the file."""

    def __init__(self, arguments: Any) -> None:
        self._path, self._count = Path(arguments.dataset_path), arguments.num_prompts

    @classmethod
    def from_args(cls, arguments: Any) -> Rows:
        return cls(arguments)

    def load(self, tokenizer: Any, model_id: str | None = None) -> list[Any]:
        from sglang.benchmark.datasets import DatasetRow

        requests = [json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines()][: self._count]
        return [
            DatasetRow(
                prompt=request["input_ids"], prompt_len=len(request["input_ids"]), output_len=request["output_len"]
            )
            for request in requests
        ]


def main() -> None:
    warnings.simplefilter("ignore")
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        from sglang.benchmark import serving
        from sglang.benchmark.datasets import DATASET_MAPPING

        DATASET_MAPPING["custom"] = Rows
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            sys.argv = ["bench_serving", *json.loads(line)]
            try:
                serving.cli_main()
                said = "done"
            except (Exception, SystemExit) as error:
                said = f"failed: {type(error).__name__}: {error}".replace("\n", " ")
            print(said, file=answers, flush=True)


if __name__ == "__main__":
    main()
