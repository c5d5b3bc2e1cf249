"""What regret to expect, beside what is guaranteed: a small public family, simulated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna.environments import (
    Bernoulli,
    ClusteredExperts,
    ConstrainedAdversary,
    Environment,
    ExpertEnvironment,
    OneGoodExpert,
    SinusoidalDrift,
    Switching,
    SwitchingExperts,
)
from bandanna.policies import (
    ALGORITHMS,
    EXPERT_ALGORITHMS,
    Bandit,
    Policy,
    PrivateBandit,
    make_expert_policy,
)
from bandanna.policies.named import NO_PRIVACY
from bandanna.simulation.runs import simulate
from bandanna.types import InputError

RUNS, EXPERT_RUNS = 20, 5
MOST_STEPS = 2e8
"""Learning steps of one algorithm on the whole family; beyond it is left out as too long."""

MOST_ADVICE = 1.2e9
"""The same for all algorithms with experts: runs times rounds times experts."""


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
            policy: Policy = (
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


def _expect(name: str, policy: Policy, arms: int, rounds: int, seed: int) -> Expectation:
    regrets: dict[str, NDArray[np.float64]] = {}
    for number, environment in enumerate(family(arms, rounds)):
        results = simulate(policy, environment, replicates=RUNS, seed=seed + number, progress=False)
        label = f"hard {environment.name}" if environment.name in regrets else environment.name
        regrets[label] = results.regret("policy") / rounds
    return _summary(name, regrets)


def expected_regret_with_experts(
    arms: int, experts: int, rounds: int, epsilon: float, delta: float, *, seed: int = 0
) -> tuple[list[Expectation], dict[str, str]]:
    """Simulate every algorithm with expert advice that applies; returns the rest with the reason.

    The family: a good expert among guessers, one that is hardly better than they, experts in
    groups, and a good expert that changes midway.
    """
    every = len(EXPERT_ALGORITHMS) + 1
    if EXPERT_RUNS * 4 * every * float(rounds) * (10 + experts) > MOST_ADVICE:
        return [], dict.fromkeys(EXPERT_ALGORITHMS, "would take too long to simulate here")
    policies: dict[str, Policy] = {}
    left_out = {}
    for name in (*EXPERT_ALGORITHMS, NO_PRIVACY):
        try:
            policies[name] = make_expert_policy(name, experts, arms, epsilon, delta, rounds)
        except InputError as error:
            left_out[name] = str(error)
    barely = min(0.9, 1.0 / arms + 4.0 * float(np.sqrt(arms / rounds)))
    size = experts, arms, rounds
    places: dict[str, ExpertEnvironment] = {
        "one-good": OneGoodExpert(*size),
        "hard one-good": OneGoodExpert(*size, quality=barely),
        "clustered": ClusteredExperts(*size),
        "switching-experts": SwitchingExperts(*size),
    }
    regrets: dict[str, dict[str, NDArray[np.float64]]] = {name: {} for name in policies}
    for label, environment in places.items():
        results = simulate(policies, environment, replicates=EXPERT_RUNS, seed=seed, progress=False)
        for name in policies:
            regrets[name][label] = results.regret(name) / rounds
    return [_summary(name, found) for name, found in regrets.items()], left_out


def _summary(name: str, regrets: dict[str, NDArray[np.float64]]) -> Expectation:
    everything = np.concatenate(list(regrets.values()))
    worst = max(regrets, key=lambda label: float(regrets[label].mean()))
    return Expectation(
        name,
        float(np.median(everything)),
        float(np.quantile(everything, 0.95)),
        float(regrets[worst].mean()),
        worst,
    )
