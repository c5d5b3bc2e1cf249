"""The distribution that Adaptive plays: follow the leader with a log barrier, solved.

It minimises ``<L + m, x> - sum(rate_i * log(x_i))`` over the simplex. The minimiser is
``x_i = rate_i / (v_i + y)``, ``v`` being ``L + m`` above its least value, with the one ``y`` that
makes it sum to 1; that is between the rate of the best arm and the sum of all rates. One over the
sum is a harmonic mean of straight lines in ``y``, increasing and concave, so Newton's method on it
is safe from any start, for the reasons given in ``bandanna.learners.ftrl``.
"""

from __future__ import annotations

from bandanna.compiled import step
from bandanna.learners.ftrl import MAX_STEPS, TOLERANCE, Floats


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
