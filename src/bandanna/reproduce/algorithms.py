"""Which algorithm for which world: a study over all environments, and the choice it gives.

Where losses are steady or changing the algorithm with the least regret on the whole is the choice.
Where they may be anything, steady ones among them, it is the one whose worst environment is least
bad: whoever cannot say what the world is like does not want to be told that it works on average.
"""

from __future__ import annotations

import numpy as np

from bandanna._core.types import JSON
from bandanna.algorithms import ANY, CHANGING, STEADY
from bandanna.planner.plan import Standing, runs_in
from bandanna.reproduce.contest import Outcome, contest
from bandanna.reproduce.verdicts import Reproduction, Verdict, frozen_settings
from bandanna.studies.figure import Figure, Point

REACTING = "reacting"
MEMBERS = {STEADY: (STEADY,), ANY: (STEADY, ANY), CHANGING: (CHANGING,), REACTING: (REACTING,)}
"""The kinds of environments that belong to each world."""


def reproduce(quick: bool) -> Reproduction:
    """Play everything and compare, world by world, what is chosen there with all others."""
    settings = frozen_settings("algorithms", quick)
    outcomes = contest(settings)
    rows: list[list[str]] = []
    verdicts = []
    for world, members in MEMBERS.items():
        inside = [outcome for outcome in outcomes if outcome.world in members]
        table = {
            name: standing([outcome for outcome in inside if outcome.algorithm == name])
            for name in settings["algorithms"]
            if inside
        }
        for name, found in sorted(table.items(), key=lambda pair: pair[1].merit(world)):
            numbers = [f"{number:.2f}" for number in found[:3]]
            rows.append([world, name, *numbers, found.where])
        if inside and world != REACTING:
            verdicts.append(_verdict(world, table, settings))
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
            _points(outcomes, settings["algorithms"]),
        ),
    )


def standing(outcomes: list[Outcome]) -> Standing:
    """Summarise one algorithm's outcomes in a world."""
    places: dict[str, list[float]] = {}
    for outcome in outcomes:
        places.setdefault(outcome.environment, []).append(outcome.relative)
    worst = {name: geometric_mean(found) for name, found in places.items()}
    where = max(worst, key=lambda name: worst[name])
    return Standing(
        geometric_mean([outcome.relative for outcome in outcomes]),
        geometric_mean([outcome.relative_high for outcome in outcomes]),
        worst[where],
        where,
    )


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def _verdict(world: str, table: dict[str, Standing], settings: JSON) -> Verdict:
    """Judge what is chosen for a world by the algorithm that does best there."""
    name = runs_in(world)
    merits = {rival: found.merit(world) for rival, found in table.items()}
    others = [rival for rival in merits if rival != name]
    next_best = min(others, key=lambda rival: merits[rival])
    what = "the least bad worst environment" if world == ANY else "the least regret on the whole"
    return Verdict(
        f"losses={world!r} runs {name}, which has {what}",
        f"{merits[name]:.2f} times the least; next {next_best}, {merits[next_best]:.2f}",
        f"a factor of {settings['tie']:g}",
        merits[name] <= settings["tie"] * merits[next_best],
    )


def _points(outcomes: list[Outcome], algorithms: list[str]) -> list[Point]:
    """Return geometric means by world and epsilon, and where half of the problems are."""
    points = []
    for world in (STEADY, ANY, CHANGING):
        inside = [outcome for outcome in outcomes if outcome.world in MEMBERS[world]]
        for name in algorithms:
            for epsilon in sorted({outcome.size[2] for outcome in inside}):
                found = [
                    outcome.relative
                    for outcome in inside
                    if (outcome.algorithm, outcome.size[2]) == (name, epsilon)
                ]
                low, high = np.quantile(found, (0.25, 0.75))
                middle = geometric_mean(found)
                points.append(Point(world, name, epsilon, middle, float(low), float(high)))
    return points
