"""Evidence that an arm has become worse, from its released losses alone.

Each arm keeps two running means of its losses, one over the last few and one over ten times as
many. Where the shorter is higher by more than ``SURE`` of its standard deviations, what was learned
of the arms is probably out of date, and the learner forgets at ``PACE`` times the speed of the
longer mean. An arm that became better is no reason: its own losses say so.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step

Floats = NDArray[np.float64]

SPAN = 3.0
"""The longer mean is over this times the root of how many losses count."""
SHORTER = 10.0
LONGEST_WEIGHT = 0.02
SURE = 3.0
PACE = 2.0
FIRST_VARIANCE, AS_MANY = 0.1, 5.0
"""What the variance of losses is taken for before they tell, with the weight of as many."""


@step
def most_faded(count: float) -> float:
    """Return the most that is forgotten in a step on evidence, when so many losses count."""
    return PACE * min(1.0 / (SPAN * math.sqrt(count)), LONGEST_WEIGHT)


@step
def fade_on_evidence(
    recent: Floats, usual: Floats, variance: float, arm: int, loss: float, seen: float, count: float
) -> tuple[float, float]:
    """Move an arm's means by a loss, its ``seen``-th; returns what to forget, and the variance.

    ``count`` losses of all arms count, and ``variance`` is their mean squared distance from what
    was usual.
    """
    weight = min(1.0 / (SPAN * math.sqrt(count)), LONGEST_WEIGHT)
    if seen > 1.0:
        variance += ((loss - usual[arm]) ** 2 - variance) / (count + AS_MANY)
    recent[arm] += max(1.0 / seen, SHORTER * weight) * (loss - recent[arm])
    usual[arm] += max(1.0 / seen, weight) * (loss - usual[arm])
    rise = recent[arm] - usual[arm]
    quick = SHORTER * weight
    if rise <= 0.0 or rise * rise * (2.0 - quick) <= SURE * SURE * variance * quick:
        return 0.0, variance
    doubt = rise * rise / (SURE * SURE * variance * quick / (2.0 - quick)) - 1.0
    return PACE * weight * min(max(doubt, 0.0), 1.0), variance
