"""Lifts: Fieller's interval, and the one from two intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bandanna.inference import Interval
from bandanna.scorecard.lift import fieller, from_intervals


@pytest.mark.parametrize("mean", [0.02, 0.1, 0.5])
def test_fieller_covers(mean: float) -> None:
    draw, people = np.random.default_rng(round(1000 * mean)), 2_000
    covered = said = 0
    for _ in range(600):
        top, bottom = draw.binomial(people, [1.1 * mean, mean]) / people
        spread = [value * (1 - value) / people for value in (top, bottom)]

        def radius(r: float, spread: list[float] = spread) -> float:
            return 1.96 * math.sqrt(spread[0] + r * r * spread[1])

        found = fieller(top, bottom, radius, 1.96 * math.sqrt(spread[1]))
        if found is not None:
            said += 1
            covered += found.low <= 0.1 <= found.high
    assert said > 550
    assert covered >= 0.905 * said  # 95% expected; below this has probability under 1e-6


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
