"""Which algorithm to run with experts: a contest with frozen settings, by what losses are like."""

from __future__ import annotations

import math

import numpy as np

from bandanna._core.types import JSON
from bandanna.algorithms import ANY, AUTO, EXPERT_ALGORITHMS, STEADY, find
from bandanna.environments import ExpertEnvironment, ExpertTable, make_environment
from bandanna.environments.digits import DIGITS, train_experts
from bandanna.policy import Experts, Policy
from bandanna.simulation.baselines import make_policy
from bandanna.simulation.runs import simulate
from bandanna.spec import Problem
from research import Reproduction, frozen_settings
from research.algorithms import (
    MERITS,
    ON_THE_WHOLE,
    Outcome,
    judge,
    label,
    points_of,
    relative,
    rows_of,
    standings,
)
from research.figures import Figure

PLAIN = "no privacy: "
"""Before the name of a learner without privacy."""
LEFT_OUT = "nearest neighbours"
"""The kind of classifier that is left out, because it would be the best by far."""


def reproduce(quick: bool) -> Reproduction:
    """Play everything; judge what runs in each world, and without privacy, by the best there."""
    settings = frozen_settings("experts", quick)
    outcomes = [
        outcome
        for entry in settings["environments"]
        for rounds, epsilon in settings["sizes"]
        for outcome in _outcomes(entry, rounds, epsilon, settings)
    ]
    rows, verdicts = [], []
    for world in (STEADY, ANY):
        table = standings(world, outcomes)
        rows += rows_of(world, table)
        private = {name: found for name, found in table.items() if not name.startswith(PLAIN)}
        if world == ANY:  # what runs there must promise something
            private = {name: found for name, found in private.items() if _promises(name)}
        name, whose = EXPERT_ALGORITHMS[world][0], ", of those with a bound," * (world == ANY)
        merit = MERITS.get(world, ON_THE_WHOLE)
        claim = f"losses={world!r} runs {name}, which has{whose} {merit}"
        verdicts.append(judge(claim, name, world, private, settings))
    own = Experts(3, 2, 10).algorithm
    plain = {name: found for name, found in table.items() if name.startswith(PLAIN)}
    claim = f"Experts runs {own}, which has {merit}"
    verdicts.append(judge(claim, f"{PLAIN}{own}", ANY, plain, settings))
    return Reproduction(
        name="experts",
        claim="regret relative to the least for the same problem, over environments and sizes",
        headings=["losses", "algorithm", "mean", "90%", "worst", "where"],
        rows=rows,
        verdicts=verdicts,
        settings=settings,
        figure=Figure(
            "Regret relative to the best algorithm for each problem, with experts",
            "epsilon",
            "times the least",
            points_of([one for one in outcomes if not one.algorithm.startswith(PLAIN)]),
        ),
    )


def _outcomes(entry: JSON, rounds: int, epsilon: float, settings: JSON) -> list[Outcome]:
    environment = world_of(entry, rounds)
    arms, experts = environment.arms, environment.experts
    problem = Problem(arms, rounds, epsilon, experts)
    policies: dict[str, Policy] = {
        name: make_policy(name, problem) for name in settings["algorithms"]
    }
    for name in settings["without"]:
        policies[f"{PLAIN}{name}"] = Experts(experts, arms, rounds, name)
    runs, seed = settings["replicates"], settings["seed"]
    found = simulate(policies, environment, replicates=runs, seed=seed, checkpoints=1)
    means = {name: float(found.regret(name).mean()) for name in policies}
    highs = {name: float(np.quantile(found.regret(name), 0.9)) for name in policies}
    shown: JSON = {"name": "an expert wakes" if "waking" in entry else "classifiers", **entry}
    outcomes = []
    for plain in (False, True):
        names = [name for name in policies if name.startswith(PLAIN) == plain]
        floor = settings["floor"] * math.sqrt(experts * rounds / (1.0 if plain else epsilon))
        mean = relative({name: means[name] for name in names}, floor)
        high = relative({name: highs[name] for name in names}, floor)
        size = arms, rounds, epsilon
        outcomes += [
            Outcome(
                *(entry["world"], label(shown), size, name, means[name], highs[name]),
                *(mean[name], high[name]),
            )
            for name in names
        ]
    return outcomes


def world_of(entry: JSON, rounds: int) -> ExpertEnvironment:
    """Return an environment: one with a name, or one that is made here."""
    if "part" in entry:
        return classifiers(entry["part"], rounds)
    if "waking" in entry:
        size = entry["experts"], entry["arms"], rounds
        return waking(*size, entry["quality"], entry["waking"])
    options = {key: value for key, value in entry.items() if key not in ("world", "name")}
    size = options.pop("arms", None), rounds, options.pop("experts", None)
    made = make_environment(entry["name"], *size, **options)
    assert isinstance(made, ExpertEnvironment)
    return made


def classifiers(part: str, rounds: int, seed: int = 0) -> ExpertTable:
    """Three classifiers of handwritten digits as experts; the loss is 1 for a wrong digit."""
    known = train_experts()
    whose = [
        index
        for index, name in enumerate(known.names)
        if name.endswith(part) and not name.startswith(LEFT_OUT)
    ]
    images = np.random.default_rng(seed).integers(0, known.digits.size, rounds)
    losses = known.digits[images, np.newaxis] != np.arange(DIGITS)
    names = [known.names[index] for index in whose]
    advice = known.votes[images][:, whose]
    return ExpertTable(losses.astype(np.float64), advice, expert_names=names)


def waking(
    experts: int, arms: int, rounds: int, quality: float, later: float, seed: int = 0
) -> ExpertTable:
    """The first expert is good; after half of the rounds the last one is better, and all guess."""
    rng = np.random.default_rng(seed)
    best = rng.integers(0, arms, rounds)
    votes = rng.integers(0, arms, (rounds, experts))
    wrong = (best + rng.integers(1, arms, rounds)) % arms
    first = rng.random(rounds) < quality
    last = rng.random(rounds) < later
    votes[:, 0] = np.where(first, best, wrong)
    half = rounds // 2
    votes[half:, -1] = np.where(last, best, wrong)[half:]
    losses = np.where(np.arange(arms) == best[:, np.newaxis], 0.2, 0.8)
    return ExpertTable(losses, votes)


def _promises(name: str) -> bool:
    """Whether a bound is known for an algorithm with experts."""
    if name == AUTO:
        return True
    entry = find(name, with_experts=True)
    return (entry.over or entry).bound is not None
