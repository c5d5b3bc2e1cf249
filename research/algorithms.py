"""Which algorithm to run: a contest with frozen settings, by what losses are like."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bandanna._core.types import JSON
from bandanna.algorithms import ANY, CHANGING, STEADY
from bandanna.environments import Environment, make_environment
from bandanna.environments.base import World
from bandanna.policy import Policy
from bandanna.simulation.baselines import make_policy
from bandanna.simulation.runs import simulate
from bandanna.spec import Problem
from research import Reproduction, Verdict, frozen_settings
from research.figures import Figure, Point
from research.regime_map import OURS

OWN_ARMS = ("trial", "barrier")
"""Environments that bring their arms."""


CHANGES = ", changes"
"""After an algorithm's name: told how often the best arm changes."""


class Rank(NamedTuple):
    """How an algorithm does in a world; regrets are times the least for the same problem."""

    mean: float
    """Geometric mean over environments and sizes, of mean regret."""
    high: float
    """The same of the 90% quantile."""
    worst: float
    """The environment's with the largest mean over sizes."""
    where: str

    def merit(self, losses: str) -> float:
        """Return what decides in a world: on the whole, or the worst where nothing is known."""
        return self.worst if losses == ANY else self.mean


def runs_in(losses: str) -> str:
    """Return what runs in a world, by the name it was measured under."""
    return {ANY: "adaptive", STEADY: "phased", CHANGING: f"adaptive{CHANGES}"}[losses]


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
        for entry in settings["environments"]
        for size in _sizes(entry["name"], settings["sizes"])
        for outcome in _outcomes(entry, size, settings)
    ]


def _sizes(name: str, sizes: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    if name not in OWN_ARMS:
        return [(arms, rounds, epsilon) for arms, rounds, epsilon in sizes]
    own = make_environment(name, rounds=1000).arms
    return list(dict.fromkeys((own, rounds, epsilon) for _, rounds, epsilon in sizes))


def _outcomes(entry: JSON, size: tuple[int, int, float], settings: JSON) -> Iterator[Outcome]:
    arms, rounds, epsilon = size
    environment = _environment(entry, size)
    runs = settings["replicates"][str(rounds)]
    policies = {name: _policy(name, size, settings["changes"]) for name in settings["algorithms"]}
    found = simulate(policies, environment, replicates=runs, seed=settings["seed"], checkpoints=1)
    above = 0.0
    if entry["world"] == "changing":
        above = above_the_best_of_each_piece(environment, settings["pieces"])
    regrets = {name: found.regret(name) + above for name in policies}
    means = {name: float(regret.mean()) for name, regret in regrets.items()}
    highs = {name: float(np.quantile(regret, 0.9)) for name, regret in regrets.items()}
    floor = settings["floor"] * math.sqrt(arms * rounds / epsilon)
    mean, high = relative(means, floor), relative(highs, floor)
    for name in policies:
        numbers = means[name], highs[name], mean[name], high[name]
        yield Outcome(entry["world"], label(entry), size, name, *numbers)


def relative(regrets: dict[str, float], floor: float) -> dict[str, float]:
    """Divide by the smallest; what is below zero, better than every fixed arm, counts as zero."""
    counted = {name: max(regret, 0.0) + floor for name, regret in regrets.items()}
    least = min(counted.values())
    return {name: regret / least for name, regret in counted.items()}


def _policy(name: str, size: tuple[int, int, float], changes: int) -> Policy:
    problem = Problem(*size, changes=changes if name.endswith(CHANGES) else None)
    ours: JSON = {"constants": "ours"} if name.endswith(OURS) else {}
    return make_policy(name.removesuffix(CHANGES).removesuffix(OURS), problem, **ours)


def _environment(entry: JSON, size: tuple[int, int, float]) -> Environment:
    arms, rounds, epsilon = size
    options = {key: value for key, value in entry.items() if key not in ("world", "name")}
    if "hard" in options:
        options["gap"] = min(1.0, options.pop("hard") * math.sqrt(arms / (rounds * epsilon)))
    if "turn" in options:
        options["shift"] = round(options.pop("turn") * rounds)
    if "waves" in options:
        options["period"] = rounds / options.pop("waves")
    made: World = make_environment(entry["name"], arms, rounds, **options)
    assert isinstance(made, Environment)
    return made


def label(entry: JSON) -> str:
    """Say an environment in a few words."""
    options = [
        key if value is True else f"{key} {value if isinstance(value, str) else format(value, 'g')}"
        for key, value in entry.items()
        if key not in ("world", "name")
    ]
    return " ".join([entry["name"], *options])


def above_the_best_of_each_piece(environment: Environment, pieces: int) -> float:
    """Return how far the best fixed arm is above the best arm of each piece of the rounds."""
    stops = np.unique(np.linspace(0, environment.rounds, pieces + 1)[1:].astype(np.int64))
    totals = environment.arm_totals(stops)
    each = np.diff(totals, axis=0, prepend=0.0)
    return float(totals[-1].min() - each.min(axis=1).sum())


REACTING = "reacting"
MEMBERS = {STEADY: (STEADY,), ANY: (STEADY, ANY), CHANGING: (CHANGING,), REACTING: (REACTING,)}
"""The kinds of environments that belong to each world."""


ON_THE_WHOLE = "the least regret on the whole"
MERITS = {ANY: "the least bad worst environment"}
"""What an algorithm is chosen for in a world, where that is not regret on the whole."""


def reproduce(quick: bool) -> Reproduction:
    """Play everything and compare, world by world, what is chosen there with all others."""
    settings = frozen_settings("algorithms", quick)
    outcomes = contest(settings)
    rows: list[list[str]] = []
    verdicts = []
    for world in MEMBERS:
        table = standings(world, outcomes)
        rows += rows_of(world, table)
        if table and world != REACTING:
            name = runs_in(world)
            claim = f"losses={world!r} runs {name}, which has {MERITS.get(world, ON_THE_WHOLE)}"
            verdicts.append(judge(claim, name, world, table, settings))
    return Reproduction(
        name="algorithms",
        claim="regret relative to the least for the same problem, over environments and sizes",
        headings=["losses", "algorithm", "mean", "90%", "worst", "where"],
        rows=rows,
        verdicts=verdicts,
        settings=settings,
        figure=Figure(
            "Regret relative to the best algorithm for each problem",
            "epsilon",
            "times the least",
            points_of(outcomes),
        ),
    )


def standings(world: str, outcomes: list[Outcome]) -> dict[str, Rank]:
    """Return how each algorithm does in a world, the best first."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.world in MEMBERS[world]:
            found.setdefault(outcome.algorithm, []).append(outcome)
    table = {name: standing(own) for name, own in found.items()}
    return dict(sorted(table.items(), key=lambda pair: pair[1].merit(world)))


def rows_of(world: str, table: dict[str, Rank]) -> list[list[str]]:
    """Write down how algorithms do in a world."""
    return [
        [world, name, *(f"{number:.2f}" for number in found[:3]), found.where]
        for name, found in table.items()
    ]


def standing(outcomes: list[Outcome]) -> Rank:
    """Summarise one algorithm's outcomes in a world."""
    by_environment: dict[str, list[float]] = {}
    for outcome in outcomes:
        by_environment.setdefault(outcome.environment, []).append(outcome.relative)
    worst = {name: geometric_mean(found) for name, found in by_environment.items()}
    where = max(worst, key=lambda name: worst[name])
    return Rank(
        geometric_mean([outcome.relative for outcome in outcomes]),
        geometric_mean([outcome.relative_high for outcome in outcomes]),
        worst[where],
        where,
    )


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def judge(claim: str, name: str, world: str, table: dict[str, Rank], settings: JSON) -> Verdict:
    """Judge what is chosen for a world by the best of the others."""
    merits = {rival: found.merit(world) for rival, found in table.items()}
    next_best = min((rival for rival in merits if rival != name), key=lambda rival: merits[rival])
    return Verdict(
        claim,
        f"{merits[name]:.2f} times the least; next {next_best}, {merits[next_best]:.2f}",
        f"a factor of {settings['tie']:g}",
        merits[name] <= settings["tie"] * merits[next_best],
    )


def points_of(outcomes: list[Outcome]) -> list[Point]:
    """Return geometric means by world and epsilon, and where half of the problems are."""
    points = []
    for world in (STEADY, ANY, CHANGING):
        cells: dict[tuple[str, float], list[float]] = {}
        for outcome in outcomes:
            if outcome.world in MEMBERS[world]:
                cells.setdefault((outcome.algorithm, outcome.size[2]), []).append(outcome.relative)
        for (name, epsilon), found in sorted(cells.items(), key=lambda cell: cell[0][1]):
            low, high = np.quantile(found, (0.25, 0.75))
            points.append(
                Point(world, name, epsilon, geometric_mean(found), float(low), float(high))
            )
    return points
