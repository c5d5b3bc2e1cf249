"""Every algorithm in every environment at every size: what a choice among them can rest on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bandanna._core.types import JSON
from bandanna.environments import Environment, make_environment
from bandanna.environments.base import World
from bandanna.planner.plan import CHANGES
from bandanna.policies import Policy
from bandanna.problem import Problem
from bandanna.simulation.contestants import make_policy
from bandanna.simulation.runs import simulate

OWN_ARMS = ("trial", "barrier")
"""Environments that bring their arms."""


class Outcome(NamedTuple):
    """Regret of one algorithm in one environment at one size."""

    world: str
    environment: str
    size: tuple[int, int, float]
    algorithm: str
    mean: float
    high: float
    """90% quantile."""
    relative: float
    """Mean regret, times that of the best algorithm for this problem."""
    relative_high: float


def contest(settings: JSON) -> list[Outcome]:
    """Play everything; relative regrets are to the best in the same environment and size."""
    return [
        outcome
        for place in settings["environments"]
        for size in _sizes(place["name"], settings["sizes"])
        for outcome in _outcomes(place, size, settings)
    ]


def _sizes(name: str, sizes: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    if name not in OWN_ARMS:
        return [(arms, rounds, epsilon) for arms, rounds, epsilon in sizes]
    own = make_environment(name, rounds=1000).arms
    return list(dict.fromkeys((own, rounds, epsilon) for _, rounds, epsilon in sizes))


def _outcomes(place: JSON, size: tuple[int, int, float], settings: JSON) -> Iterator[Outcome]:
    arms, rounds, epsilon = size
    environment = _environment(place, size)
    runs = settings["replicates"][str(rounds)]
    policies = {name: _policy(name, size, settings["changes"]) for name in settings["algorithms"]}
    found = simulate(policies, environment, replicates=runs, seed=settings["seed"], checkpoints=1)
    above = 0.0
    if place["world"] == "changing":
        above = above_the_best_of_each_piece(environment, settings["pieces"])
    regrets = {name: found.regret(name) + above for name in policies}
    means = {name: float(regret.mean()) for name, regret in regrets.items()}
    highs = {name: float(np.quantile(regret, 0.9)) for name, regret in regrets.items()}
    floor = settings["floor"] * math.sqrt(arms * rounds / epsilon)
    relative, relative_high = _relative(means, floor), _relative(highs, floor)
    for name in policies:
        numbers = means[name], highs[name], relative[name], relative_high[name]
        yield Outcome(place["world"], label(place), size, name, *numbers)


def _relative(regrets: dict[str, float], floor: float) -> dict[str, float]:
    """Divide by the smallest; what is below zero, better than every fixed arm, counts as zero."""
    counted = {name: max(regret, 0.0) + floor for name, regret in regrets.items()}
    least = min(counted.values())
    return {name: regret / least for name, regret in counted.items()}


def _policy(name: str, size: tuple[int, int, float], changes: int) -> Policy:
    problem = Problem(*size, changes=changes if name.endswith(CHANGES) else None)
    return make_policy(name.removesuffix(CHANGES), problem)


def _environment(place: JSON, size: tuple[int, int, float]) -> Environment:
    arms, rounds, epsilon = size
    options = {key: value for key, value in place.items() if key not in ("world", "name")}
    if "hard" in options:
        options["gap"] = min(1.0, options.pop("hard") * math.sqrt(arms / (rounds * epsilon)))
    if "turn" in options:
        options["shift"] = round(options.pop("turn") * rounds)
    if "waves" in options:
        options["period"] = rounds / options.pop("waves")
    made: World = make_environment(place["name"], arms, rounds, **options)
    assert isinstance(made, Environment)
    return made


def label(place: JSON) -> str:
    """Say an environment in a few words."""
    options = [
        key if value is True else f"{key} {value:g}"
        for key, value in place.items()
        if key not in ("world", "name")
    ]
    return " ".join([place["name"], *options])


def above_the_best_of_each_piece(environment: Environment, pieces: int) -> float:
    """Return how far the best fixed arm is above the best arm of each piece of the rounds."""
    stops = np.unique(np.linspace(0, environment.rounds, pieces + 1)[1:].astype(np.int64))
    totals = environment.arm_totals(stops)
    each = np.diff(totals, axis=0, prepend=0.0)
    return float(totals[-1].min() - each.min(axis=1).sum())
