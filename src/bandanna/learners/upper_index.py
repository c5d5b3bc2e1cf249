"""How large an arm's mean reward may still be, given what was seen: the indices of KL-UCB.

``kl`` is the divergence of two Bernoulli laws. Its private counterpart (Azize, Wu, Honda, Orabona,
Ito, Basu 2025) is ``d(x, y) = min over z of epsilon |z - x| + kl(z, y)``: how well an
epsilon-private policy can tell mean x from mean y. For ``x < y`` the minimum is at
``z = y e / (1 - y + y e)``, ``e = exp(-epsilon)``, where that is above x; there
``d(x, y) = -epsilon x - ln(1 - y (1 - e))``, otherwise it is ``kl(x, y)``.
"""

from __future__ import annotations

import math

from bandanna._core.compiled import step

ALMOST_ONE = 1.0 - 2.0**-52
NEWTON_STEPS = 60


@step
def kl(x: float, y: float) -> float:
    """Return the divergence of a Bernoulli law of mean x from one of mean y, both in [0, 1]."""
    total = 0.0
    if x > 0.0:
        total += x * math.log(x / y) if y > 0.0 else math.inf
    if x < 1.0:
        total += (1.0 - x) * math.log((1.0 - x) / (1.0 - y)) if y < 1.0 else math.inf
    return total


@step
def kl_upper(x: float, level: float, start: float) -> float:
    """Return the largest y with ``kl(x, y) <= level``, by Newton's method from above.

    ``kl(x, .)`` is convex and increasing beyond x, so from a start at or above the root, steps
    come down to it without passing it.
    """
    if x >= 1.0:
        return 1.0
    y = min(start, x + math.sqrt(0.5 * level), ALMOST_ONE)
    for _ in range(NEWTON_STEPS):
        excess = kl(x, y) - level
        if excess <= 1e-12 * level or y <= x:
            break
        y -= excess * y * (1.0 - y) / (y - x)
    return max(y, x)


@step
def private_upper(x: float, level: float, epsilon: float) -> float:
    """Return the largest y in [0, 1] with ``d(x, y) <= level``."""
    e = math.exp(-epsilon)
    meet = x / (x + (1.0 - x) * e)  # up to here d is kl
    if x > 0.0 and kl(x, meet) >= level:
        return kl_upper(x, level, meet)
    return min(math.expm1(-level - epsilon * x) / math.expm1(-epsilon), 1.0)
