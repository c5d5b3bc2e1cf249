"""Exponential weights on losses with Laplace noise: what EXP3 and EXP4 share.

No bound here needs the noise to be small in every round, as the paper's do: its exact moments are
used instead, and the logarithms of T disappear (``docs/theory/tight-constants.md``). ``lam`` is the
scale of the noise on a loss.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bandanna.theory.tuning import TooFewRoundsError


class Weights(NamedTuple):
    """What exponential weights are tuned by."""

    learning_rate: float
    mixing: float = 0.0


class Spread(NamedTuple):
    """A constant of a bound, and the share of the noise's range that makes it smallest."""

    value: float
    theta: float


def noisy_spread(noise: float) -> Spread:
    """Return ``C(lam)``, the least ``(1/2 + lam^2) / (1 - theta^2) + lam / theta``."""
    # The minimum is where theta^3 = m (1 - theta^2)^2. Newton's method comes down to it from
    # m^(1/3) without overshooting, and any theta below 1 would do.
    m = noise / (1.0 + 2.0 * noise**2)
    theta = m ** (1.0 / 3.0)
    for _ in range(5):
        gap = 1.0 - theta**2
        theta -= (theta**3 - m * gap**2) / (3.0 * theta**2 + 4.0 * m * theta * gap)
    return Spread((0.5 + noise**2) / (1.0 - theta**2) + noise / theta, theta)


class WeightTerms(NamedTuple):
    """What exponential weights on noisy losses pay for."""

    choices: float
    variance: float
    mixing: float


def noisy_weights(
    choices: float, arms: int, losses: int, noise: float
) -> tuple[WeightTerms, dict[str, float]]:
    """Bound the regret of EXP3 and EXP4 on losses with Laplace noise, and say how to run them.

    ``choices`` is the logarithm of how many arms or experts the best is sought among.
    """
    spread = noisy_spread(noise)
    rate = math.sqrt(choices / (losses * arms * spread.value))
    mixing = rate * noise * arms / spread.theta
    if mixing > 1.0:
        raise TooFewRoundsError(f"{losses} losses are too few: its mixing would be above 1.")
    variance = rate * losses * arms * (0.5 + noise**2) / (1.0 - spread.theta**2)
    settings = {"learning_rate": rate, "mixing": mixing, "noise": noise}
    return WeightTerms(choices / rate, variance, mixing * losses), settings
