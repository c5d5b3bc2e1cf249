"""``python -m benchmarks.expected``: what algorithms lose in a small family of environments.

That is beside what a plan guarantees, which holds for the worst losses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.types import InputError
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
from bandanna.planner.plan import planned
from bandanna.policy import Policy
from bandanna.simulation.arguments import seconds_of
from bandanna.simulation.baselines import NO_PRIVACY, make_policy, strongest
from bandanna.simulation.progress import Progress
from bandanna.simulation.runs import simulate
from bandanna.spec import Problem

FAMILY_RUNS, EXPERT_RUNS = 20, 5
FAMILY_STEPS = 2e8
"""Learning steps of one algorithm on the whole family; beyond it is left out as too long."""

FAMILY_ADVICE = 1.2e8
"""The same with experts: runs times rounds times experts."""


FAMILY_BASELINE = 0.3
"""Seconds that a run of a learner without privacy may take."""


class TypicalRegret(NamedTuple):
    """Regret of one algorithm over the family, as shares of the rounds.

    ``no-privacy`` is in each environment the strongest learner without it.
    """

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


def expert_family(problem: Problem) -> dict[str, ExpertEnvironment]:
    """Return a good expert among guessers, a hardly better one, groups, and one that changes."""
    arms, rounds, _ = problem.size
    barely = min(0.9, 1.0 / arms + 4.0 * float(np.sqrt(arms / rounds)))
    size = problem.num_experts, arms, rounds
    return {
        "one-good": OneGoodExpert(*size),
        "hard one-good": OneGoodExpert(*size, quality=barely),
        "clustered": ClusteredExperts(*size),
        "switching-experts": SwitchingExperts(*size),
    }


def expected_regret(
    problem: Problem, *, local: bool = False, seed: int = 0
) -> tuple[list[TypicalRegret], dict[str, str]]:
    """Simulate every algorithm of a plan that applies; returns the rest with the reason."""
    rounds = problem.horizon("a simulation")
    policies: dict[str, Policy] = {}
    left_out = {}
    for entry, batch in planned(problem, local=local):
        try:
            policy = make_policy(entry.name, problem, batch)
        except InputError as error:
            left_out[entry.name] = str(error)
            continue
        if _too_long(policy, problem):
            left_out[entry.name] = "would take too long to simulate here"
            continue
        policies[entry.name] = policy
    regrets: dict[str, dict[str, NDArray[np.float64]]] = {name: {} for name in policies}
    if not policies:
        return [], left_out
    environments = _environments(problem)
    runs = EXPERT_RUNS if problem.with_experts else FAMILY_RUNS
    work = len(environments) * runs * seconds_of(policies.values(), rounds)
    with Progress(work, gathers=True):
        for number, (label, environment) in enumerate(environments.items()):
            own = seed if problem.with_experts else seed + number
            here = _with_strongest(policies, environment, own)
            results = simulate(here, environment, replicates=runs, seed=own)
            for name, measured in regrets.items():
                measured[label] = results.regret(name) / rounds
    return [_summary(name, measured) for name, measured in regrets.items()], left_out


def _environments(problem: Problem) -> dict[str, Environment | ExpertEnvironment]:
    if problem.with_experts:
        return {**expert_family(problem)}
    environments: dict[str, Environment | ExpertEnvironment] = {}
    for environment in family(problem.arms, problem.horizon("a simulation")):
        name = environment.name
        environments[f"hard {name}" if name in environments else name] = environment
    return environments


def _with_strongest(
    policies: dict[str, Policy], environment: Environment | ExpertEnvironment, seed: int
) -> dict[str, Policy]:
    """Let ``no-privacy`` be the strongest learner without privacy in this environment."""
    if NO_PRIVACY not in policies:
        return policies
    best = strongest(environment, seed=seed, most_seconds=FAMILY_BASELINE)
    return policies | {NO_PRIVACY: best}


def _too_long(policy: Policy, problem: Problem) -> bool:
    arms, rounds, _ = problem.size
    if problem.with_experts:  # advice is looked at every round
        return EXPERT_RUNS * 4 * float(rounds) * (10 + problem.num_experts) > FAMILY_ADVICE
    # FTPL draws every arm about as often as it has arms to tell the chances by repetition.
    each = arms**2 if policy.recipe.learner.name == "ftpl" else 1 + arms // 10
    # Rounds of a phase are drawn one by one; eight take as long as a batch.
    batch = 8 if getattr(policy.recipe.learner, "phases", False) else policy.recipe.batch
    return FAMILY_RUNS * 5 * rounds / batch * each > FAMILY_STEPS


def _summary(name: str, regrets: dict[str, NDArray[np.float64]]) -> TypicalRegret:
    everything = np.concatenate(list(regrets.values()))
    worst = max(regrets, key=lambda label: float(regrets[label].mean()))
    return TypicalRegret(
        name,
        float(np.median(everything)),
        float(np.quantile(everything, 0.95)),
        float(regrets[worst].mean()),
        worst,
    )


def main() -> None:
    """Print what is to be expected with 4 arms, 100,000 rounds and epsilon 0.5."""
    rows, left_out = expected_regret(Problem(4, 100_000, 0.5))
    for row in sorted(rows, key=lambda row: row.typical):
        print(
            f"{row.algorithm:16} median {row.typical:7.2%}  95% {row.high:6.2%}  "
            f"worst mean {row.worst:6.2%} ({row.worst_environment})"
        )
    for name, why in left_out.items():
        print(f"{name}: {why}")


if __name__ == "__main__":
    main()
