"""What regret to expect, beside what is guaranteed: a small public family, simulated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandanna.environments import (
    Bernoulli,
    ConstrainedAdversary,
    Environment,
    SinusoidalDrift,
    Switching,
)
from bandanna.policies import ALGORITHMS, Bandit, BatchedBandit, PrivateBandit
from bandanna.simulation.runs import simulate
from bandanna.types import InputError

RUNS = 20
MOST_STEPS = 2e8
"""Learning steps of one algorithm on the whole family; beyond it is left out as too long."""


class Expectation(NamedTuple):
    """Regret of one algorithm over the family, as shares of the rounds."""

    algorithm: str
    typical: float
    """Median over all runs in all environments."""
    high: float
    """95% quantile."""
    worst: float
    """Largest mean of any environment."""
    worst_environment: str


def family(arms: int, rounds: int) -> list[Environment]:
    """Return the environments: an easy, a hard, a changing, a drifting and a swinging one."""
    hard = min(1.0, float(np.sqrt(arms / rounds)) * 4)
    return [
        Bernoulli(arms, rounds, gap=0.2),
        Bernoulli(arms, rounds, gap=hard),
        Switching(arms, max(rounds, 2)),
        SinusoidalDrift(arms, rounds),
        ConstrainedAdversary(arms, rounds),
    ]


def expected_regret(
    arms: int, rounds: int, epsilon: float, *, seed: int = 0
) -> tuple[list[Expectation], dict[str, str]]:
    """Simulate every algorithm that applies; returns the rest with the reason."""
    found, left_out = [], {}
    for name in (*ALGORITHMS, "no privacy"):
        try:
            policy: BatchedBandit = (
                Bandit(arms) if name == "no privacy" else PrivateBandit(arms, epsilon, rounds, name)
            )
        except InputError as error:
            left_out[name] = str(error)
            continue
        # FTPL draws every arm about as often as it has arms to tell the chances by repetition.
        cost = arms**2 if name == "ftpl" else 1 + arms // 10
        if RUNS * len(family(arms, 2)) * rounds / policy.batch * cost > MOST_STEPS:
            left_out[name] = "would take too long to simulate here"
            continue
        found.append(_expect(name, policy, arms, rounds, seed))
    return found, left_out


def _expect(name: str, policy: BatchedBandit, arms: int, rounds: int, seed: int) -> Expectation:
    regrets = {}
    for number, environment in enumerate(family(arms, rounds)):
        results = simulate(policy, environment, replicates=RUNS, seed=seed + number, progress=False)
        label = f"hard {environment.name}" if environment.name in regrets else environment.name
        regrets[label] = results.regret("policy") / rounds
    everything = np.concatenate(list(regrets.values()))
    worst = max(regrets, key=lambda label: float(regrets[label].mean()))
    return Expectation(
        name,
        float(np.median(everything)),
        float(np.quantile(everything, 0.95)),
        float(regrets[worst].mean()),
        worst,
    )
