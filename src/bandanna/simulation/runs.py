"""Many runs of many policies, spread over the cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandanna import checks
from bandanna.environments import (
    Environment,
    ExpertEnvironment,
    as_environment,
    as_expert_environment,
)
from bandanna.grid import UNITS
from bandanna.learners import Uniform
from bandanna.policies import BatchedBandit, BatchedExperts, BatchedPolicy, Recipe
from bandanna.privacy import PlainRelease
from bandanna.simulation.engine import Run, play_run
from bandanna.simulation.expert_runs import simulate_experts
from bandanna.simulation.progress import Progress
from bandanna.simulation.results import PolicyRuns, Results, policy_runs
from bandanna.types import InputError

CHECKPOINTS = 50
UNIFORM_RUNS = 50
MAX_STEPS = 1e13
"""Learning steps in one call; at about 100 ns each, several days on two cores."""
MAX_NUMBERS = 1e9

Policies = BatchedPolicy | Mapping[str, Any]


def simulate(
    policies: Policies,
    losses: Any,
    *,
    advice: Any = None,
    replicates: int = 100,
    seed: int = 0,
    cores: int | None = None,
    checkpoints: int | Sequence[int] | NDArray[np.int64] = CHECKPOINTS,
    progress: bool | None = None,
) -> Results:
    """Play policies many times each and measure their regret.

    Every run starts afresh, whatever the policy given has already seen, and with seeded noise:
    this is for comparison, not for decisions about people.

    Parameters
    ----------
    policies
        Policies by name, or one policy.
    losses
        A (rounds, arms) table of losses in [0, 1], or an environment.
    advice
        With a table of losses and policies with experts: (rounds, experts) indices of arms, or
        (rounds, experts, arms) distributions. An environment with experts brings its own.
    replicates
        Runs of each policy, at least 1.
    seed
        Makes everything repeatable; a whole number, at least 0.
    cores
        How many threads to use, by default one for each core. The result does not depend on it.
    checkpoints
        At how many rounds, evenly spaced on a logarithmic scale, regret is recorded; or the
        numbers of rounds themselves.
    progress
        Show a progress bar; by default on a terminal, once two seconds have passed.

    Examples
    --------
    >>> import bandanna as bd, numpy as np
    >>> losses = np.tile([0.1, 0.9], (1000, 1))
    >>> results = bd.simulate({"one-bit": bd.PrivateBandit(2, epsilon=1.0)}, losses, replicates=20)
    >>> results.regret("one-bit").shape
    (20,)
    """
    runs = checks.whole("replicates", replicates, at_least=1)
    checks.whole("seed", seed, at_least=0)
    available = os.cpu_count() or 1
    threads = checks.whole("cores", available if cores is None else cores, at_least=1)
    if advice is not None or isinstance(losses, ExpertEnvironment):
        with_experts = as_expert_environment(losses, advice)
        stops = checkpoint_rounds(with_experts.rounds, checkpoints)
        experts: dict[str, BatchedExperts] = _named(policies, BatchedExperts)
        options = {"runs": runs, "seed": seed, "threads": threads}
        return simulate_experts(experts, with_experts, stops, progress=progress, **options)
    named: dict[str, BatchedBandit] = _named(policies, BatchedBandit)
    environment = as_environment(losses)
    for name, policy in named.items():
        if len(policy.arms) != environment.arms:
            raise InputError(
                f"policy {name!r} has {len(policy.arms)} arms and the losses {environment.arms}."
            )
    stops = checkpoint_rounds(environment.rounds, checkpoints)
    recipes = {name: policy.recipe for name, policy in named.items()}
    _check_size(recipes, environment, runs, stops.size)
    with Progress(len(recipes) * runs, show=progress) as bar:
        played = {
            name: _play_all(recipe, environment, stops, seed, runs, threads, bar.advance)
            for name, recipe in recipes.items()
        }
    return Results(
        runs={
            name: _summarise(results, environment, stops, recipes[name].batch)
            for name, results in played.items()
        },
        rounds=environment.rounds,
        stops=stops,
        comparator=environment.comparator,
        uniform_regret=_uniform_regret(environment, stops, seed, threads),
    )


def checkpoint_rounds(
    rounds: int, checkpoints: int | Sequence[int] | NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return numbers of rounds in order, the last being all of them."""
    if isinstance(checkpoints, Sequence | np.ndarray):
        chosen = np.unique(np.asarray([*checkpoints, rounds], dtype=np.int64))
        if chosen[0] < 1 or chosen[-1] > rounds:
            raise InputError(f"checkpoints must be rounds from 1 to {rounds}; got {checkpoints!r}.")
        return chosen
    count = checks.whole("checkpoints", checkpoints, at_least=1)
    spaced = np.unique(np.rint(np.geomspace(1, rounds, count)).astype(np.int64))
    spaced[-1] = rounds
    return spaced


def _check_size(
    recipes: Mapping[str, Recipe], environment: Environment, runs: int, stops: int
) -> None:
    """Refuse what would take days or more memory than machines have, before starting."""
    steps = runs * sum(-(-environment.rounds // recipe.batch) for recipe in recipes.values())
    if steps > MAX_STEPS:
        raise InputError(
            f"this would take {steps:.2g} learning steps (runs times batches), more than "
            f"{MAX_STEPS:g}; use fewer rounds or replicates, or larger batches."
        )
    numbers = len(recipes) * runs * (2 * stops + environment.arms * (1 + 2 * stops))
    if numbers > MAX_NUMBERS:
        raise InputError(
            f"the results would hold {numbers:.2g} numbers, more than {MAX_NUMBERS:g}; use fewer "
            f"replicates, arms or checkpoints."
        )


def _named(policies: Policies, kind: type[Any]) -> dict[str, Any]:
    if not isinstance(policies, BatchedPolicy | Mapping):
        raise InputError(
            f"policies must be a policy or a dict of names and policies; got "
            f"{type(policies).__name__}."
        )
    named = {"policy": policies} if isinstance(policies, BatchedPolicy) else dict(policies)
    if not named:
        raise InputError("simulate needs at least one policy; got none.")
    for name, policy in named.items():
        if not isinstance(policy, kind):
            wanted = (
                "a PrivateBandit or a Bandit"
                if kind is BatchedBandit
                else "PrivateExperts or Experts, since there is advice"
            )
            hint = "; it needs advice=" if isinstance(policy, BatchedExperts) else ""
            raise InputError(
                f"policy {name!r} must be {wanted}; got {type(policy).__name__}{hint}."
            )
    return named


def _play_all(
    recipe: Recipe,
    environment: Environment,
    stops: NDArray[np.int64],
    seed: int,
    runs: int,
    threads: int,
    advance: Callable[[], None],
) -> list[Run]:
    """Play every run; compiled runs leave the interpreter, so threads use all cores."""
    results: dict[int, Run] = {0: play_run(recipe, environment, stops, seed, 0)}  # compiles
    advance()
    with ThreadPoolExecutor(threads) as pool:
        waiting = {
            pool.submit(play_run, recipe, environment, stops, seed, run): run
            for run in range(1, runs)
        }
        try:
            for done in as_completed(waiting):
                results[waiting[done]] = done.result()
                advance()
        except BaseException:  # Ctrl-C or a failing learner: do not start what has not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [results[run] for run in range(runs)]


def _summarise(
    results: list[Run], environment: Environment, stops: NDArray[np.int64], batch: int
) -> PolicyRuns:
    if environment.comparator == "adaptive":
        best = np.array([run.realised for run in results]).min(axis=2) / UNITS
    else:
        best = environment.arm_totals(stops).min(axis=1)
    return policy_runs(results, best, stops, batch)


def _uniform_regret(
    environment: Environment, stops: NDArray[np.int64], seed: int, threads: int
) -> NDArray[np.float64]:
    """Return the uniform player's expected regret; against an adaptive adversary, simulated."""
    if environment.comparator != "adaptive":
        totals = environment.arm_totals(stops)
        expected: NDArray[np.float64] = totals.mean(axis=1) - totals.min(axis=1)
        return expected
    recipe = Recipe(Uniform(environment.arms), PlainRelease())
    runs = _play_all(recipe, environment, stops, seed, UNIFORM_RUNS, threads, lambda: None)
    mean: NDArray[np.float64] = _summarise(runs, environment, stops, 1).regret.mean(axis=0)
    return mean
