"""The slot pool: what it lends, and that it notices what should not come back."""

from __future__ import annotations

import numpy as np
import pytest

from triradix.replay.pool import SlotPool


def test_lends_whole_pages_and_takes_them_back() -> None:
    pool = SlotPool(1000, 16)
    assert pool.capacity == 992
    first, second = pool.take(32), pool.take(48)
    assert first.tolist() == list(range(32))
    assert second.tolist() == list(range(32, 80))
    assert pool.used == 80
    pool.give_back(first)
    assert pool.used == 48
    assert sorted(pool.take(48).tolist()) == [*range(32), *range(80, 96)]
    assert pool.missing(992 - 96) == 0
    assert pool.missing(992 - 96 + 16) == 16


def test_bounds() -> None:
    pool = SlotPool(64, 16)
    for slots in (80, 8):
        with pytest.raises(ValueError, match="cannot lend"):
            pool.take(slots)
    pool.take(64)
    assert pool.missing(16) == 16


def test_without_bound() -> None:
    pool = SlotPool(None, 4)
    assert pool.capacity is None
    slots = pool.take(400_000)
    assert pool.missing(10**12) == 0
    pool.give_back(slots[::-1].reshape(-1, 4)[:, ::-1].ravel())
    assert pool.used == 0
    assert sorted(pool.take(400_000).tolist()) == slots.tolist()


@pytest.mark.parametrize(
    "slots",
    [[0, 1, 2], [1, 2, 3, 4], [0, 1, 3, 2], [-4, -3, -2, -1], [8, 9, 10, 11], [0, 1, 2, 3, 0, 1, 2]],
)
def test_refuses_what_are_no_pages_of_it(slots: list[int]) -> None:
    pool = SlotPool(64, 4)
    pool.take(8)
    with pytest.raises(RuntimeError, match="no whole pages"):
        pool.give_back(np.array(slots))
    assert pool.used == 8


def test_notices_a_page_that_comes_back_twice() -> None:
    pool = SlotPool(64, 4)
    slots = pool.take(8)
    pool.give_back(slots[:4])
    with pytest.raises(RuntimeError, match="page 0 came back to the pool twice"):
        pool.give_back(slots)


def test_the_final_check_finds_leaks_and_doubles() -> None:
    pool = SlotPool(64, 4)
    slots = pool.take(16)
    pool.check_only_holder(slots[::-1])
    pool.check_only_holder(np.roll(slots, 3))
    for wrong in (slots[:12], np.concatenate((slots[:12], slots[:4])), np.concatenate((slots, slots[:4]))):
        with pytest.raises(RuntimeError, match=r"slots leaked|no whole pages"):
            pool.check_only_holder(wrong)
    pool.give_back(np.concatenate((slots[:4], slots[:4])))
    with pytest.raises(RuntimeError, match="slots leaked"):
        pool.check_only_holder(slots[4:])
