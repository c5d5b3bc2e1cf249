"""Exponents fitted to measured points on logarithmic axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

LEVEL = 0.95
SURE = 0.02
"""Points with a smaller relative error than this count the same: no law is that exact."""


class Slope(NamedTuple):
    """A fitted exponent with a 95% confidence interval."""

    value: float
    low: float
    high: float
    constant: float
    """The line is ``constant * x ** value``."""

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def fit_slope(x: Iterable[float], y: Iterable[float], errors: Iterable[float]) -> Slope | None:
    """Fit ``y ~ x ** slope`` to means with their standard errors, all above 0.

    Least squares on logarithms, each point weighted by its precision. The interval is the larger
    of two: from the errors of the points, and from how far they scatter about the line. Fewer
    than three different points give no interval worth the name, and None.

    Examples
    --------
    >>> round(fit_slope([1, 10, 100], [2, 20, 200], [0.1, 1, 10]).value, 6)
    1.0
    """
    from scipy import stats

    points, means = np.array([*x], dtype=float), np.array([*y], dtype=float)
    if np.unique(points).size < 3 or means.min() <= 0.0:
        return None
    across, up = np.log(points), np.log(means)
    relative = np.array([*errors], dtype=float) / means
    weights = 1.0 / np.maximum(np.nan_to_num(relative, nan=1.0), SURE) ** 2
    middle = np.average(across, weights=weights)
    spread = float(np.sum(weights * (across - middle) ** 2))
    slope = float(np.sum(weights * (across - middle) * up) / spread)
    level = float(np.average(up, weights=weights) - slope * middle)
    left_over = float(np.sum(weights * (up - level - slope * across) ** 2))
    freedom = across.size - 2
    tail = (1.0 + LEVEL) / 2.0
    half = max(
        stats.norm.ppf(tail) / np.sqrt(spread),
        stats.t.ppf(tail, freedom) * np.sqrt(left_over / freedom / spread),
    )
    return Slope(slope, slope - float(half), slope + float(half), float(np.exp(level)))
