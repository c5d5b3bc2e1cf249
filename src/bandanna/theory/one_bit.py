"""The regret bound of the one-bit conversion, and the batch that makes it smallest.

Proofs: ``docs/theory/one-bit.md`` and ``docs/theory/tsallis-inf.md``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def tsallis_inf_regret(batches: NDArray[np.float64], arms: int) -> NDArray[np.float64]:
    """Bound the regret of reduced-variance Tsallis-INF over a number of losses in [0, 1]."""
    logarithm = np.log(np.maximum(batches / 15.0, 1.0))
    return 2.0 * np.sqrt(arms * batches) + 4.07 * arms * logarithm + 16.0


def one_bit_regret(
    batch: NDArray[np.float64], rounds: int, arms: int, epsilon: float
) -> NDArray[np.float64]:
    """Bound the regret of the one-bit conversion of Tsallis-INF, for several batch sizes at once.

    ``(batch / s) R(floor(T / batch), K) + batch``, where ``batch / s`` is
    ``batch + 2 / (exp(epsilon) - 1)``.
    """
    price = batch + 2.0 / math.expm1(epsilon)
    return price * tsallis_inf_regret(np.floor(rounds / batch), arms) + batch


def best_one_bit_batch(rounds: int, arms: int, epsilon: float) -> int:
    """Return the batch with the smallest bound.

    Searched over a fine logarithmic grid first and then over every integer between the
    neighbours of the best grid point. Where no batch has a bound below the number of rounds there
    is nothing to go by, and the batch for long horizons is taken.

    Examples
    --------
    >>> best_one_bit_batch(rounds=1_000_000, arms=10, epsilon=0.1)
    14
    >>> best_one_bit_batch(rounds=1_000_000, arms=10, epsilon=2.0)
    1
    """
    grid = np.unique(np.rint(np.geomspace(1, rounds, 2000)))
    best = int(np.argmin(one_bit_regret(grid, rounds, arms, epsilon)))
    low = grid[max(best - 1, 0)]
    high = min(grid[min(best + 1, grid.size - 1)], low + 1_000_000)
    near = np.arange(low, high + 1)
    bounds = one_bit_regret(near, rounds, arms, epsilon)
    if bounds.min() >= rounds:
        return min(default_one_bit_batch(epsilon), rounds)
    return int(near[np.argmin(bounds)])


def default_one_bit_batch(epsilon: float) -> int:
    """Return the batch for an unknown horizon: the one that is best for long ones, 2 / epsilon."""
    return max(1, round(2.0 / epsilon))
