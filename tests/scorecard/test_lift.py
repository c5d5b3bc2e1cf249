"""Lifts: Fieller's interval, and the one from two intervals."""

from __future__ import annotations

import pytest
from benchmarks.scorecards import coverage

from bandanna.inference import Interval
from bandanna.scorecard.lift import fieller, from_intervals


@pytest.mark.parametrize("mean", [0.02, 0.1, 0.5])
def test_fieller_covers(mean: float) -> None:
    found = coverage(mean, 1.0, 2_000, 1_000, binary=True)
    assert found.said > 950
    assert found.covered >= 0.91 * found.said  # 95% expected; below this has probability under 1e-6


def test_where_nothing_can_be_said() -> None:
    assert fieller(1.0, 0.1, lambda r: 0.2 * (1 + r * r) ** 0.5, 0.2) is None
    assert fieller(1.0, -1.0, lambda _: 0.2, 0.2) is None
    assert from_intervals(0.1, Interval(0.0, 0.2), 0.1, Interval(-0.1, 0.3)) is None


def test_nothing_falls_below_what_means_can_be() -> None:
    found = from_intervals(-0.5, Interval(-2.0, 0.1), 0.8, Interval(0.5, 1.0), 0.0)
    assert found is not None
    assert found.low == -1.0
    negative = from_intervals(-0.5, Interval(-2.0, 0.1), 0.8, Interval(0.5, 1.0), -5.0)
    assert negative is not None
    assert negative.low == -4.0
