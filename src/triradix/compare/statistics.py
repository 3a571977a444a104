"""From rounds to figures: medians, quartiles, and ratios with their confidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def quartiles(rounds: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    q1, median, q3 = np.quantile(np.asarray(rounds, np.float64), (0.25, 0.5, 0.75)).tolist()
    return q1, median, q3


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """The median over rounds of ours ÷ theirs, and the bounds of its 95 % confidence interval.

    Rounds are paired: the two figures of one stood next to each other in time, so what slowed the machine slowed both.
    The interval lies between two of the ratios in their order: each is above the true median as likely as below it,
    however they are spread, so chance alone says how far from the ends these two may be. Of fewer than six rounds even
    the least and the greatest hold it less often than that; they are the interval then. Rounds in which either is
    missing are left out; ValueError if none is left or the lengths differ.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} rounds cannot be paired with {len(theirs)}")
    numerator, denominator = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    good = np.isfinite(numerator) & np.isfinite(denominator) & (denominator > 0)
    ratios = numerator[good] / denominator[good]
    if not len(ratios):
        raise ValueError("no round has both figures")
    ratios.sort()
    outside = _outside(len(ratios))
    return float(np.median(ratios)), float(ratios[outside]), float(ratios[-1 - outside])


def _outside(count: int) -> int:
    """How many of so many figures may be left out at each end, so that the rest hold the median 95 times of 100.

    So many or fewer of them lie on one side of it with a chance of at most 2.5 %: as so many heads of ``count`` coins.
    """
    left_out, ways, tail = 0, 1, 1  # ways of `left_out` heads, and of so many or fewer
    while 40 * tail <= 2**count:
        ways = ways * (count - left_out) // (left_out + 1)
        left_out += 1
        tail += ways
    return max(0, left_out - 1)


def order(systems: Sequence[str], round_number: int) -> list[str]:
    """Who goes when in a round: A B C, then C B A, then A B C …

    A drift of the machine's speed within two rounds then falls on all alike.
    """
    return list(systems) if round_number % 2 == 0 else list(reversed(systems))
