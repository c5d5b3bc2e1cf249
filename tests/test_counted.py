"""What a log is counted to, on integers."""

from __future__ import annotations

import numpy as np
import pytest

import bandanna as bd
from bandanna._core.grid import UNITS
from bandanna.counted import HALF, Counted, squares_of
from bandanna.logs import answer_counted


def test_rows_and_a_query_count_the_same() -> None:
    """The formula that a warehouse uses, in whole numbers, gives what rows give."""
    rng = np.random.default_rng(0)
    cents, arms = rng.integers(0, 2_000, 5_000), rng.integers(0, 2, 5_000)
    width = 1_999
    units = (2 * cents * UNITS + width) // (2 * width)
    assert (units == np.rint(cents / width * UNITS)).all()
    counted = Counted.of_rows(("A", "B"), arms, units, outcome_range=(0, width))
    for arm in (0, 1):
        mine = units[arms == arm].tolist()
        assert counted.sums[arm, 0] == sum(mine)
        assert counted.squares is not None
        assert counted.squares[arm, 0] == sum((k - HALF) ** 2 // UNITS for k in mine)
    same = Counted(("A", "B"), counted.counts[:, 0], counted.sums[:, 0], None, (0, width))
    found = answer_counted(same, epsilon=1.0)
    assert [arm.rounds for arm in found.arms] == counted.counts[:, 0].tolist()


def test_one_outcome_moves_sum_and_square_by_at_most_one_loss() -> None:
    """What the squares rest on: |k - k'| + |square - square'| is at most UNITS, here by trying."""
    rng = np.random.default_rng(1)
    ends = np.array([0, 1, HALF - 1, HALF, HALF + 1, UNITS - 1, UNITS])
    first = np.concatenate((ends.repeat(7), rng.integers(0, UNITS + 1, 200_000)))
    second = np.concatenate((np.tile(ends, 7), rng.integers(0, UNITS + 1, 200_000)))
    moved = np.abs(first - second) + np.abs(squares_of(first) - squares_of(second))
    assert moved.max() == UNITS


def test_nothing_private_is_shown_or_told_of() -> None:
    counted = Counted(("A", "B"), np.array([2, 3]), np.array([123457, 9876543]), None)
    assert "123457" not in repr(counted)
    assert "9876543" not in repr(counted)
    assert int(counted.sums[1, 0]) == 3 * UNITS, "an impossible sum is cut off, not reported"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((("A",), np.array([1]), np.array([1]), None), "at least 2 arms"),
        ((("A", "B"), np.array([1.0, 2.0]), np.array([1, 1]), None), "whole numbers"),
        ((("A", "B"), np.array([1, -2]), np.array([1, 1]), None), "0 or more"),
        ((("A", "B"), np.array([1, 2, 3]), np.array([1, 1, 1]), None), "a row for each"),
    ],
)
def test_mistakes_are_explained(given: tuple[object, ...], said: str) -> None:
    with pytest.raises(bd.InputError, match=said):
        Counted(*given)  # type: ignore[arg-type]
