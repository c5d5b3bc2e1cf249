"""Regret where learning is hardest: the worst of several gaps, measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from bandanna.environments import Bernoulli
from bandanna.policy import Policy
from bandanna.simulation.results import statistics
from bandanna.simulation.runs import simulate


class Measured(NamedTuple):
    """A mean over runs and its standard error."""

    mean: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """A 95% confidence interval."""
        return self.mean - 1.96 * self.error, self.mean + 1.96 * self.error


def measure(policy: Policy, environment: object, replicates: int, seed: int) -> Measured:
    """Return a policy's mean regret in an environment."""
    runs = simulate(policy, environment, replicates=replicates, seed=seed, checkpoints=1)
    found = statistics(runs.regret("policy"))
    return Measured(found["mean"], found["standard_error"])


def worst_regret(
    policy: Policy,
    rounds: int,
    epsilon: float,
    gaps: Sequence[float],
    replicates: int,
    seed: int,
) -> Measured:
    """Return the largest mean regret over Bernoulli arms of which one is better.

    Neither an obvious nor an imperceptible best arm is hard; the gap that is hardest for a policy
    of ``epsilon T`` useful releases is a multiple of ``sqrt(K / (epsilon T))``.
    """
    arms = len(policy.arms)
    unit = math.sqrt(arms / (min(epsilon, 1.0) * rounds))
    found = [
        measure(policy, Bernoulli(arms, rounds, gap=min(1.0, gap * unit)), replicates, seed)
        for gap in gaps
    ]
    return max(found, key=lambda one: one.mean)
