"""From rounds to figures: medians, quartiles, and ratios with their confidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

RESAMPLES = 4_000


def quartiles(rounds: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    q1, median, q3 = np.quantile(np.asarray(rounds, np.float64), (0.25, 0.5, 0.75)).tolist()
    return q1, median, q3


def paired_ratio(ours: Sequence[float], theirs: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """The median over rounds of ours ÷ theirs, and the bounds of its 95 % confidence interval.

    Rounds are paired: the two figures of one stood next to each other in time, so what slowed the machine slowed both.
    The interval is a percentile bootstrap (Efron 1979) of the median over the pairs. Rounds in which either is missing
    are left out; ValueError if none is left or the lengths differ.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} rounds cannot be paired with {len(theirs)}")
    numerator, denominator = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    good = np.isfinite(numerator) & np.isfinite(denominator) & (denominator > 0)
    ratios = numerator[good] / denominator[good]
    if not len(ratios):
        raise ValueError("no round has both figures")
    drawn = np.random.default_rng(seed).integers(0, len(ratios), (RESAMPLES, len(ratios)))
    medians: Numbers = np.median(ratios[drawn], axis=1)
    low, high = np.quantile(medians, (0.025, 0.975)).tolist()
    return float(np.median(ratios)), low, high


def order(systems: Sequence[str], round_number: int) -> list[str]:
    """Who goes when in a round: A B C, then C B A, then A B C …

    A drift of the machine's speed within two rounds then falls on all alike.
    """
    return list(systems) if round_number % 2 == 0 else list(reversed(systems))
