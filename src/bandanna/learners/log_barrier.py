"""The distribution that Adaptive plays: follow the leader with a log barrier; what a step costs.

It minimises ``<L + m, x> - sum(rate_i * log(x_i))`` over the simplex. The minimiser is
``x_i = rate_i / (v_i + y)``, ``v`` being ``L + m`` above its least value, with the one ``y`` that
makes it sum to 1; that is between the rate of the best arm and the sum of all rates. One over the
sum is a harmonic mean of straight lines in ``y``, increasing and concave, so Newton's method on it
is safe from any start, for the reasons given in ``bandanna.learners.ftrl``.
"""

from __future__ import annotations

import math

from bandanna._core.compiled import step
from bandanna.learners.ftrl import MAX_STEPS, TOLERANCE, Floats

BEARABLE = 0.9
"""How far below its rate a surprise may push: at 1 the cost of a step would be infinite."""


@step
def solve_log_barrier(
    losses: Floats, predictions: Floats, rates: Floats, chances: Floats, y: float
) -> tuple[float, float]:
    """Fill ``chances``, starting at ``y``; returns the root and how fast the sum falls with it.

    The losses are shifted so that the least, with its prediction, is 0.
    """
    best = 0
    for i in range(1, losses.size):
        if losses[i] + predictions[i] < losses[best] + predictions[best]:
            best = i
    least = losses[best] + predictions[best]
    for i in range(losses.size):
        losses[i] -= least
    y = max(y, rates[best])
    total = 1.0
    slope = 1.0
    for _ in range(MAX_STEPS):
        total = 0.0
        slope = 0.0
        for i in range(losses.size):
            ratio = 1.0 / (losses[i] + predictions[i] + y)
            chance = rates[i] * ratio
            chances[i] = chance
            total += chance
            slope += chance * ratio
        if abs(total - 1.0) <= TOLERANCE:
            break
        y = max(y + total * (total - 1.0) / slope, rates[best])
    scale = 1.0 / total
    for i in range(losses.size):
        chances[i] *= scale
    return y, slope


@step
def step_cost(
    surprise: float, rate: float, exposed: float, chance: float, yielding: float
) -> float:
    """Bound what a step may cost: the quadratic form, times what higher orders can add.

    ``yielding`` is the root times how fast the sum falls with it: how far the other arms are
    pushed when the whole distribution gives way.
    """
    quadratic = surprise * surprise * exposed / (2.0 * rate)
    if surprise <= 0.0:
        return quadratic * higher_orders(-surprise * exposed / rate)
    pushed = surprise * chance / (rate * yielding)
    if pushed < BEARABLE:
        more = higher_orders(pushed)
        # ln(1 + u) <= u (6 + u)/(6 + 4 u): where this says enough, no logarithm is taken.
        if exposed * more * (rate + 2.0 / 3.0 * surprise) <= rate:
            return quadratic * more
        return min(surprise - rate * math.log1p(surprise / rate), quadratic * more)
    return surprise - rate * math.log1p(surprise / rate)


@step
def higher_orders(u: float) -> float:
    """Bound ``(-u - ln(1 - u)) / (u * u / 2)``, the sum of ``2 u**k / (k + 2)``, for u below 1."""
    return 1.0 + 2.0 / 3.0 * u + 0.5 * u * u / (1.0 - u)
