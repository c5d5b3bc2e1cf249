"""How much noise a vector needs: the smallest of three laws for the same (epsilon, delta).

A vector of N sums is released; one loss moves it by a known vector. The noise is independent in
each entry. Three ways to choose it, each proved in ``docs/theory/batched-exp4.md``:

- Laplace, pure: scale ``l1 / epsilon``, where ``l1`` is the sum of the moves. No delta.
- Laplace, composed: scale ``c * largest`` where ``largest`` is the largest single move and ``c``
  the smallest for which N Laplace mechanisms of sensitivity 1 compose to (epsilon, delta),
  found by dp-accounting's privacy loss distributions.
- Gaussian: standard deviation ``g * l2``, with ``g`` from the exact curve of the Gaussian
  mechanism (Balle and Wang 2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

from bandanna import checks
from bandanna.types import InputError

GRID = 2**30
"""Units in the largest possible move of a sum, K/gamma. Rounding to them costs a regret of less
than ``3 T (K/gamma) / GRID``."""

MAX_BATCH = 2**31
"""More rounds in a batch could overflow 64-bit sums."""

Law = Literal["laplace", "gaussian"]

GAUSSIAN_FLOOR, LAPLACE_FLOOR = 8e8, 2e6
"""How fine the grid must be against the noise for noise on integers to be as good as on the real
line, up to ``SLACK``: see the proof."""

SLACK = 1e-6
"""Calibrated for ``epsilon (1 - SLACK)`` and ``delta (1 - SLACK)``: room for what noise on a grid
adds to noise on the real line, and for rounding."""

WORTH_TRYING = 1e-3
"""Composed Laplace noise can be smaller than pure by a share of about ``delta 2^N / epsilon``;
below this share it is not worth loading dp-accounting for."""

CLEARLY_BETTER = 0.75
"""Where the Gaussian's deviation is below this share of pure Laplace noise's, composed Laplace
noise, which gains less than that on pure, need not be tried."""


class Calibration(NamedTuple):
    """A law of noise and how much of it is needed; two of the three multipliers are infinite."""

    law: Law
    pure: float
    """Laplace: scale per unit of l1, ``1 / epsilon``."""
    composed: float
    """Laplace: scale per unit of the largest move."""
    gaussian: float
    """Gaussian: standard deviation per unit of l2."""
    experts: int

    @property
    def multiplier(self) -> float:
        """The one that counts."""
        return min(self.pure, self.composed, self.gaussian)

    @property
    def deviation(self) -> float:
        """Standard deviation in each entry when one loss can move every entry by 1."""
        if self.law == "gaussian":
            return self.gaussian * math.sqrt(self.experts)
        return math.sqrt(2.0) * min(self.pure * self.experts, self.composed)


@lru_cache(maxsize=256)
def calibrate(epsilon: float, delta: float, experts: int) -> Calibration:
    """Return the law with the smallest noise for vectors of a length.

    Examples
    --------
    >>> calibrate(epsilon=1.0, delta=1e-6, experts=100).law
    'gaussian'
    >>> calibrate(epsilon=1.0, delta=0.0, experts=4).deviation == 4 * math.sqrt(2)
    True
    """
    pure, normal = closed_forms(epsilon, delta, experts)
    best = min(pure, normal, key=lambda noise: noise.deviation)
    unclear = normal.deviation > CLEARLY_BETTER * pure.deviation
    gain = delta * 2.0 ** min(experts, 1000) / epsilon
    if delta > 0.0 and unclear and gain > WORTH_TRYING:
        scale = laplace_multiplier(epsilon, delta, experts)
        composed = Calibration("laplace", math.inf, scale, math.inf, experts)
        best = min(best, composed, key=lambda noise: noise.deviation)
    return best


def closed_forms(epsilon: float, delta: float, experts: int) -> tuple[Calibration, Calibration]:
    """Return pure Laplace and Gaussian noise, both computed in microseconds."""
    checks.epsilon(epsilon)
    checks.delta(delta)
    experts = checks.whole("experts", experts, at_least=1)
    pure = Calibration("laplace", 1.0 / epsilon, math.inf, math.inf, experts)
    multiplier = gaussian_multiplier(epsilon, delta) if delta > 0.0 else math.inf
    return pure, Calibration("gaussian", math.inf, math.inf, multiplier, experts)


def paper_noise(epsilon: float, delta: float, experts: int) -> Calibration:
    """Return the paper's noise, refusing where its composition step does not hold.

    N mechanisms of ``e = eps / (3 sqrt(N L))`` each, ``L = log(1/delta)``, compose to
    ``3/2 N e^2 + sqrt(6 N e^2 L) = eps^2 / (6 L) + eps sqrt(6)/3``, at most epsilon only where
    ``L >= eps / (6 (1 - sqrt(6)/3)) = 0.908 eps``.
    """
    if epsilon > 1.0:
        raise InputError(f"batched-exp4 is stated for epsilon up to 1; got {epsilon:g}.")
    largest = math.exp(-0.908 * epsilon)
    if not 0.0 < delta <= largest:
        raise InputError(
            f"batched-exp4 needs a delta above 0 and, for its composition step, at most "
            f"exp(-0.908 epsilon) = {largest:.3g}; got {delta:g}. calibrated-exp4 takes any."
        )
    scale = 3.0 * math.sqrt(experts * math.log(1.0 / delta)) / epsilon
    return Calibration("laplace", math.inf, scale, math.inf, experts)


def least_scale(noise: Calibration, epsilon: float) -> float:
    """Return the smallest scale, in grid units, for which the proofs hold."""
    if noise.law == "gaussian":
        return math.sqrt(GAUSSIAN_FLOOR * noise.experts / min(1.0, epsilon))
    return 1.0 if math.isinf(noise.composed) else LAPLACE_FLOOR * noise.experts / epsilon


@lru_cache(maxsize=256)
def gaussian_multiplier(epsilon: float, delta: float) -> float:
    """Return the smallest standard deviation for sensitivity 1, by bisection of the exact curve.

    Examples
    --------
    >>> round(gaussian_multiplier(1.0, 1e-6), 3)
    4.225
    """
    target = delta * (1.0 - SLACK)

    def enough(sigma: float) -> bool:
        return gaussian_delta(epsilon * (1.0 - SLACK), sigma) <= target

    return _smallest(enough, 1e-3, 1e15)


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """Return the delta of the Gaussian mechanism of sensitivity 1 (Balle and Wang 2018, Thm 5)."""
    shift = 1.0 / (2.0 * sigma)
    first = _normal_tail(epsilon * sigma - shift)
    second = _normal_tail(epsilon * sigma + shift)
    return first - math.exp(epsilon) * second if second > 0.0 else first


def _normal_tail(x: float) -> float:
    """Return the probability that a standard normal variable exceeds x."""
    return 0.5 * math.erfc(x / math.sqrt(2.0))


@lru_cache(maxsize=256)
def laplace_multiplier(epsilon: float, delta: float, experts: int) -> float:
    """Return the smallest scale for ``experts`` Laplace mechanisms of sensitivity 1 together."""
    target = delta * (1.0 - SLACK)
    aim = epsilon * (1.0 - 2.0 * SLACK)

    def enough(scale: float) -> bool:
        return composed_laplace_delta(aim, scale, experts) <= target

    pure = experts / epsilon
    return _smallest(enough, pure / 64.0, pure, tolerance=1e-4) if enough(pure) else math.inf


def composed_laplace_delta(epsilon: float, scale: float, experts: int) -> float:
    """Return dp-accounting's upper bound on the delta of so many Laplace mechanisms."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # loaded when first used

    step = min(1e-4 * max(1.0, epsilon), 1.0 / (20.0 * scale))
    single = pld.from_laplace_mechanism(scale, sensitivity=1, value_discretization_interval=step)
    return float(single.self_compose(experts).get_delta_for_epsilon(epsilon))


def _smallest(
    enough: Callable[[float], bool], low: float, high: float, tolerance: float = 1e-12
) -> float:
    """Return the smallest number that is enough, up to a relative tolerance, from above."""
    while high > low * (1.0 + tolerance):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
