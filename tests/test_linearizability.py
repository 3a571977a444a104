"""Overlapping calls answer as some order of them would, one after the other: recorded histories against the oracle."""

from __future__ import annotations

import sys
from itertools import count

import history
from implementations import Implementation


def test_some_order_explains_each_window(implementation: Implementation, thorough: bool) -> None:
    windows = 10**6 // (history.THREADS * history.CALLS) if thorough else 250
    cache = implementation.create()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    overlapped = 0
    try:
        with history.Recorder(cache) as recorder:
            # On a busy machine few calls overlap: it takes more windows then.
            for seed in count():
                if seed >= windows and overlapped > windows // 10:
                    break
                assert seed < 20 * windows, "the calls were made one after the other, which shows nothing"
                window = history.plan(seed)
                recorder.record(window)
                assert history.is_explained(window), f"seed {seed}: {history.shown(window)}"
                overlapped += any(
                    one.began < two.ended and two.began < one.ended and one.thread != two.thread
                    for one in window.recorded
                    for two in window.recorded
                )
    finally:
        sys.setswitchinterval(before)
    cache.check()


def test_the_checker_finds_violations() -> None:
    """A history that no order explains is refused, and one that only an unlikely order explains is not."""
    insert, match = history.Call("insert", ([1, 2], [10, 11])), history.Call("match", ([1, 2],))
    before = [history.Call("insert", ([5], [0]))]

    def window(*recorded: tuple[history.Call, int, int, int, object], left: list[int]) -> history.Window:
        return history.Window(before, [], [history.Recorded(*one) for one in recorded], left)

    # The match ended first, but saw what the insert made.
    assert history.is_explained(window((insert, 0, 0, 3, (0, 2)), (match, 1, 1, 2, 2), left=[0, 11, 10]))
    for wrong in (
        window((insert, 0, 0, 1, (0, 2)), (match, 1, 2, 3, 0), left=[0, 11, 10]),  # it came later, and saw nothing
        window((insert, 0, 0, 3, (0, 2)), (match, 1, 1, 2, 1), left=[0, 11, 10]),  # it saw half
        window((insert, 0, 0, 3, (0, 2)), (match, 1, 1, 2, 2), left=[11, 10, 0]),  # the older page went later
    ):
        assert not history.is_explained(wrong), history.shown(wrong)
