"""How long a step takes on a CPU that runs the model itself: fitted to the steps that the probe saw.

Fitted is processor time: what else runs on the machine while the probe looks is not in it. A step of prefill is taken
to cost so much by itself, and for each request, each new token and each pair of a new token and one before it; a step
of decoding so much by itself, and for each request and each token before. Only what a cache takes is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CpuSteps:
    """Seconds, none of them negative. ``prefill``: a step, a request, a token, a pair; ``decode``: a step, a request, a
    token before."""

    prefill: tuple[float, float, float, float]
    decode: tuple[float, float, float]

    def __call__(self, prefills: Sequence[tuple[int, int]], decodes: Sequence[int]) -> float:
        seconds = 0.0
        if prefills:
            tokens = sum(new for new, _ in prefills)
            pairs = sum(new * before + new * new // 2 for new, before in prefills)
            seconds += float(np.dot(self.prefill, (1, len(prefills), tokens, pairs)))
        if decodes:
            seconds += float(np.dot(self.decode, (1, len(decodes), sum(decodes))))
        return seconds

    def written(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, found: dict[str, Any]) -> CpuSteps:
        return cls(tuple(found["prefill"]), tuple(found["decode"]))


def fit(steps: Sequence[dict[str, Any]]) -> CpuSteps:
    """From the probe's steps; ValueError if there are too few of one kind."""
    found: dict[str, tuple[float, ...]] = {}
    for kind, columns in (("extend", 4), ("decode", 3)):
        mine = [step for step in steps if kind in step]
        if len(mine) < 2 * columns:
            raise ValueError(f"{len(mine)} steps of kind {kind} are too few to fit {columns} numbers to")
        rest = [(step["busy"] - sum(ns for _, ns in step["calls"])) / 1e9 for step in mine]
        found[kind] = not_negative(np.array([[1, *step[kind]] for step in mine], np.float64), np.array(rest))
    return CpuSteps(found["extend"], found["decode"])  # type: ignore[arg-type]


def not_negative(table: Numbers, values: Numbers) -> tuple[float, ...]:
    """Least squares without negative factors: whatever would be negative is left out, the most negative first."""
    columns = list(range(table.shape[1]))
    scale = np.maximum(np.abs(table).max(axis=0), 1e-300)
    while columns:
        factors = np.linalg.lstsq(table[:, columns] / scale[columns], values, rcond=None)[0]
        worst = int(np.argmin(factors))
        if factors[worst] >= 0:
            result = np.zeros(table.shape[1])
            result[columns] = factors / scale[columns]
            found: list[float] = result.tolist()
            return tuple(found)
        del columns[worst]
    return tuple(0.0 for _ in range(table.shape[1]))
