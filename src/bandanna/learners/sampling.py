"""Drawing an arm from weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna._core.streams import Stream, uniform

MAX_IMPORTANCE = 1e15
"""Cap on 1 / probability. Such an arm is drawn less than once in 10**15 rounds; without the cap
its estimate could overflow, and zero times infinity is not a number."""


@step
def pick(weights: NDArray[np.float64], low: int, high: int, target: float) -> int:
    """Return the first i in [low, high) whose weight, added to those before it, exceeds target.

    When rounding lets the target pass the total, the last positive weight is taken.
    """
    i = low
    last = high - 1
    while i < last and target >= weights[i]:
        target -= weights[i]
        i += 1
    while i > low and weights[i] <= 0.0:
        i -= 1
    return i


@step
def total_of(weights: NDArray[np.float64]) -> float:
    """Return the sum of weights, taken in order."""
    total = 0.0
    for i in range(weights.size):
        total += weights[i]
    return total


@step
def draw_arm(chances: NDArray[np.float64], stream: Stream) -> tuple[int, float]:
    """Draw an arm by its chance; returns it with one over that."""
    arm = pick(chances, 0, chances.size, uniform(stream))
    return arm, capped_inverse(chances[arm])


@step
def capped_inverse(probability: float) -> float:
    """Return 1 / probability, at most ``MAX_IMPORTANCE``."""
    return min(1.0 / probability, MAX_IMPORTANCE)
