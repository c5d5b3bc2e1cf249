"""The regret bound of the one-bit conversion, and the batch that makes it smallest.

Proofs: ``docs/theory/one-bit.md`` and ``docs/theory/tsallis-inf.md``.
"""

from __future__ import annotations

import math

from bandanna.theory.search import best_batch


def one_bit_price(batch: int, epsilon: float) -> float:
    """Return ``batch / s = batch + 2 / (exp(epsilon) - 1)``: what a unit of the bits' regret costs.

    ``s`` is the slope of the bit's expectation in the batch's mean loss.
    """
    return batch - 2.0 * math.exp(-epsilon) / math.expm1(-epsilon)


def tsallis_inf_regret(losses: int, arms: int) -> float:
    """Bound the regret of reduced-variance Tsallis-INF over a number of losses in [0, 1]."""
    logarithm = math.log(max(losses / 15.0, 1.0))
    return 2.0 * math.sqrt(arms * losses) + 4.07 * arms * logarithm + 16.0


def one_bit_regret(batch: int, rounds: int, arms: int, epsilon: float) -> float:
    """Bound the regret of the one-bit conversion of Tsallis-INF.

    ``(batch / s) R(floor(T / batch), K) + batch``.
    """
    return one_bit_price(batch, epsilon) * tsallis_inf_regret(rounds // batch, arms) + batch


def best_one_bit_batch(rounds: int, arms: int, epsilon: float) -> int:
    """Return the batch with the smallest bound.

    Where no batch has a bound below the number of rounds there is nothing to go by, and the batch
    for long horizons is taken.

    Examples
    --------
    >>> best_one_bit_batch(rounds=1_000_000, arms=10, epsilon=0.1)
    14
    >>> best_one_bit_batch(rounds=1_000_000, arms=10, epsilon=2.0)
    1
    """
    best = best_batch(lambda batch: one_bit_regret(batch, rounds, arms, epsilon), rounds)
    if one_bit_regret(best, rounds, arms, epsilon) >= rounds:
        return min(default_one_bit_batch(epsilon), rounds)
    return best


def default_one_bit_batch(epsilon: float) -> int:
    """Return the batch for an unknown horizon: the one that is best for long ones, 2 / epsilon."""
    return max(1, round(2.0 / epsilon))
