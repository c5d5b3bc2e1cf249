"""The least regret that any private policy can have, where an environment's means are known."""

from __future__ import annotations

import numpy as np

from bandanna._core.grid import UNITS
from bandanna.environments import Environment, ExpertEnvironment, Logged
from bandanna.environments.synthetic import SegmentParams
from bandanna.theory.stationary import stationary_least_plays, stationary_lower_bound

MOST_PLAYS = 0.1
"""The bound is for long runs: those in which worse arms need only this share of the rounds."""


def least_regret(environment: Environment | ExpertEnvironment, epsilon: float) -> float | None:
    """Return the private lower bound for steady losses that are 0 or 1, in people's units.

    It is a statement about long runs: short ones can have less regret. None for other losses, where
    all arms are equally good, and where the run is too short for the bound to mean anything: where
    the plays of worse arms that it counts are more than a tenth of the rounds.

    Examples
    --------
    >>> from bandanna.environments import Bernoulli, Switching
    >>> round(least_regret(Bernoulli([0.45] + 9 * [0.55], 1_000_000), epsilon=0.1))
    1420
    >>> least_regret(Switching(10, 1_000_000), epsilon=0.1) is None
    True
    """
    means = _steady_means(environment)
    if means is None:
        return None
    rounds = environment.rounds
    if stationary_least_plays(means, rounds, epsilon) > MOST_PLAYS * rounds:
        return None
    return stationary_lower_bound(means, rounds, epsilon) * environment.span or None


def _steady_means(environment: Environment | ExpertEnvironment) -> list[float] | None:
    """Return each arm's chance of a loss of 1, where losses are 0 or 1 and their law stays."""
    if isinstance(environment, ExpertEnvironment):
        return None
    params = environment.params()
    if isinstance(params, SegmentParams):
        steady = params.bernoulli and len(params.means) == 1
    elif isinstance(environment, Logged):
        steady = environment.steady and bool(np.isin(environment.log.units, (0, UNITS)).all())
    else:
        return None
    totals = environment.arm_totals(np.array([environment.rounds]))[0]
    return [float(total) / environment.rounds for total in totals] if steady else None
