"""How much larger one mean is than another, as a share of it: Fieller's interval, with noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from bandanna.inference import Interval

FARTHEST = 1e6
"""Lifts beyond this are not said."""


class Lift(NamedTuple):
    """A lift and its interval: 0.02 is 2% more."""

    lift: float
    low: float
    high: float


def fieller(
    top: float, bottom: float, radius: Callable[[float], float], bottom_radius: float
) -> Lift | None:
    """Return the lifts ``top / bottom - 1`` that are not refuted.

    A ratio ``r`` is refuted where ``top - r bottom`` is further from 0 than chance and noise
    explain. None where the bottom may be 0 or less, because then no ratio is far enough away.

    Parameters
    ----------
    top, bottom
        The estimates of the two means.
    radius
        How far ``top - r bottom`` may be from its true value, for any ``r``.
    bottom_radius
        How far ``bottom`` may be from its true value, with the same confidence.

    Examples
    --------
    >>> found = fieller(1.1, 1.0, lambda r: 0.1 * (1 + r * r) ** 0.5, 0.1)
    >>> [round(value, 3) for value in found]
    [0.1, -0.039, 0.261]
    >>> fieller(1.1, 1.0, lambda r: 1.1 * (1 + r * r) ** 0.5, 1.1) is None
    True
    """
    if bottom <= bottom_radius:
        return None
    ratio = top / bottom

    def beyond(r: float) -> float:
        return abs(top - r * bottom) - radius(r)

    ends = [_end(beyond, ratio, sign) for sign in (-1.0, 1.0)]
    if None in ends:
        return None
    low, high = (end for end in ends if end is not None)
    return Lift(ratio - 1.0, low - 1.0, high - 1.0)


def _end(beyond: Callable[[float], float], ratio: float, sign: float) -> float | None:
    """Return the last ratio on one side that is not refuted; None if there is none near."""
    from scipy.optimize import brentq  # loaded when first used

    if beyond(ratio) >= 0.0:  # nothing varies, and there is no noise
        return ratio
    step = 0.01 * max(abs(ratio), 1e-6)
    while beyond(ratio + sign * step) <= 0.0:
        step *= 2.0
        if step > FARTHEST:
            return None
    return float(brentq(beyond, ratio, ratio + sign * step, xtol=1e-9, rtol=1e-9))


def from_intervals(
    difference: float, apart: Interval, bottom: float, around: Interval, least: float = -math.inf
) -> Lift | None:
    """Return the lift from intervals of the difference and of the control's mean.

    It holds whenever both of them do. Wider than Fieller's, and right at any time if they are.
    Means are known to be ``least`` or more.

    Examples
    --------
    >>> from_intervals(0.1, Interval(0.05, 0.15), 1.0, Interval(0.5, 2.0))
    Lift(lift=0.1, low=0.025, high=0.3)
    """
    if around.low <= 0.0 or bottom <= 0.0:
        return None
    ends = [end / mean for end in apart for mean in around]
    worst = -1.0 if least >= 0.0 else -math.inf
    return Lift(max(difference / bottom, worst), max(min(ends), worst), max(ends))
