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

from bandanna._core import checks
from bandanna._core.types import InputError
from bandanna.privacy.mechanism import Numerics, continuous_laplace_loss

GRID = 2**30
"""Units in the largest possible move of a sum, K/gamma. Rounding to them costs a regret of at
most ``T (3 u + u^2/2)``, u = ``(K/gamma) / GRID``."""

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

SMALLEST_COMPOSED = 1e-12
"""Below this delta dp-accounting's own rounding shows."""

MOST_NOISE = 2.0**58
"""Largest deviation in grid units: 64-bit integers hold sixteen of them."""


TAIL_ERROR, SMALLEST_NORMAL = 1e-14, 1e-307
"""How far off the C library's tail can be, relatively and near the end of the range of floats."""

UNIT = 2.0**-53
"""Half a unit in the last place of a float, relatively."""


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
    epsilon: float

    @property
    def multiplier(self) -> float:
        """The one that counts."""
        return min(self.pure, self.composed, self.gaussian)

    @property
    def deviation(self) -> float:
        """Standard deviation in each entry when one loss can move every entry by 1."""
        floor = self.least / GRID
        if self.law == "gaussian":
            return max(self.gaussian * math.sqrt(self.experts), floor)
        return math.sqrt(2.0) * max(min(self.pure * self.experts, self.composed), floor)

    @property
    def least(self) -> float:
        """The smallest scale, in grid units, for which the proofs hold."""
        if self.law == "gaussian":
            return math.sqrt(GAUSSIAN_FLOOR * self.experts / min(1.0, self.epsilon))
        return 1.0 if math.isinf(self.composed) else LAPLACE_FLOOR * self.experts / self.epsilon


@lru_cache(maxsize=256)
def calibrate(epsilon: float, delta: float, experts: int) -> Calibration:
    """Return the law with the smallest noise for vectors of a length.

    Composed Laplace noise is tried where pure Laplace noise is below Gaussian noise: there it is
    the same law with a smaller scale, so that every bound for pure noise holds for it as well.

    Examples
    --------
    >>> calibrate(epsilon=1.0, delta=1e-6, experts=100).law
    'gaussian'
    >>> calibrate(epsilon=1.0, delta=0.0, experts=4).deviation == 4 * math.sqrt(2)
    True
    """
    best = smallest_closed_form(epsilon, delta, experts)
    gain = delta * 2.0 ** min(experts, 1000) / epsilon
    if best.law == "laplace" and delta >= SMALLEST_COMPOSED and gain > WORTH_TRYING:
        scale = laplace_multiplier(epsilon, delta, experts)
        composed = Calibration("laplace", math.inf, scale, math.inf, experts, epsilon)
        best = min(best, composed, key=lambda noise: noise.deviation)
    if best.deviation * GRID > MOST_NOISE:
        raise InputError(
            f"noise for {experts} experts at epsilon {epsilon:g} and delta {delta:g} would not fit "
            f"64-bit integers; use a larger epsilon, fewer experts, or a conversion."
        )
    return best


def smallest_closed_form(epsilon: float, delta: float, experts: int) -> Calibration:
    """Return pure Laplace or Gaussian noise, whichever is smaller; it takes microseconds."""
    return min(closed_forms(epsilon, delta, experts), key=lambda noise: noise.deviation)


def closed_forms(epsilon: float, delta: float, experts: int) -> tuple[Calibration, Calibration]:
    """Return pure Laplace and Gaussian noise."""
    checks.epsilon(epsilon)
    checks.delta(delta)
    experts = checks.whole("experts", experts, at_least=1)
    pure = Calibration("laplace", 1.0 / epsilon, math.inf, math.inf, experts, epsilon)
    multiplier = gaussian_multiplier(epsilon, delta) if delta > 0.0 else math.inf
    return pure, Calibration("gaussian", math.inf, math.inf, multiplier, experts, epsilon)


def paper_noise(epsilon: float, delta: float, experts: int) -> Calibration:
    """Return the paper's noise, refusing where its composition step does not hold.

    N mechanisms of ``e = eps / (3 sqrt(N L))`` each, ``L = log(1/delta)``, compose to
    ``3/2 N e^2 + sqrt(6 N e^2 L) = eps^2 / (6 L) + eps sqrt(6)/3``, at most epsilon only where
    ``L >= eps / (6 (1 - sqrt(6)/3)) = 0.908 eps``.
    """
    if epsilon > 1.0:
        raise InputError(f"batched-exp4 is stated for epsilon up to 1; got {epsilon:g}.")
    checks.delta(delta)
    largest = math.exp(-epsilon / (6.0 - 2.0 * math.sqrt(6.0)))
    if not 0.0 < delta <= largest:
        raise InputError(
            f"batched-exp4 needs a delta above 0 and, for its composition step, at most "
            f"exp(-0.908 epsilon) = {largest:.3g}; got {delta:g}. constants='ours' takes any."
        )
    scale = 3.0 * math.sqrt(experts * math.log(1.0 / delta)) / epsilon
    return Calibration("laplace", math.inf, scale, math.inf, experts, epsilon)


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
    """Bound the delta of the Gaussian mechanism of sensitivity 1 (Balle and Wang 2018, Thm 5).

    The exact curve is a difference of two tails that may be nearly equal; what rounding can have
    done to them is added.
    """
    shift, level = 1.0 / (2.0 * sigma), epsilon * sigma
    growth = math.exp(epsilon)
    first = _normal_tail(level - shift)
    second = growth * _normal_tail(level + shift)
    rounding = first * _tail_error(level, -shift) + second * _tail_error(level, shift)
    return max(first - second, 0.0) + rounding + growth * SMALLEST_NORMAL


def _tail_error(level: float, shift: float) -> float:
    """Bound the relative error of a tail computed at ``level + shift``.

    The point is off by the roundings of level, shift and sum, and by two more when it is divided
    by the square root of 2. A tail changes, relatively, by its hazard rate times that, at most
    ``1 + x`` for x > 0 and 1 below; the factor of 2 covers rates that grow on the way and what
    rounding does here.
    """
    x = level + shift
    moved = UNIT * (level + abs(shift) + 4.0 * abs(x))
    return TAIL_ERROR + 2.0 * moved * (1.0 + max(x, 0.0))


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
    step = min(1e-4 * max(1.0, epsilon), 1.0 / (20.0 * scale))
    single = continuous_laplace_loss(scale, Numerics(step))
    return float(single.self_compose(experts).get_delta_for_epsilon(epsilon))


def _smallest(
    enough: Callable[[float], bool], low: float, high: float, tolerance: float = 1e-12
) -> float:
    """Return the smallest number that is enough, up to a relative tolerance, from above."""
    while high > low * (1.0 + tolerance):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
