"""Which algorithm to run with experts: a contest with frozen settings, by what losses are like."""

from __future__ import annotations

import math

import numpy as np

from bandanna._core.types import JSON
from bandanna.algorithms import ANY, AUTO, EXPERT_ALGORITHMS, STEADY, find
from bandanna.environments import ExpertEnvironment, ExpertTable, make_environment
from bandanna.environments.digits import DIGITS, train_experts
from bandanna.planner.plan import Standing
from bandanna.policy import Experts, Policy
from bandanna.reproduce.algorithms import Outcome, label, relative, standing
from bandanna.reproduce.verdicts import Reproduction, Verdict, frozen_settings
from bandanna.simulation.contestants import make_policy
from bandanna.simulation.runs import simulate
from bandanna.spec import Problem
from bandanna.studies.figure import Figure, Point

MEMBERS = {STEADY: (STEADY,), ANY: (STEADY, ANY)}
"""The kinds of environments that belong to each world."""
PLAIN = "no privacy: "
"""Before the name of a learner without privacy."""
LEFT_OUT = "nearest neighbours"
"""Of the four kinds of classifiers, the one that would be the best by far."""


def reproduce(quick: bool) -> Reproduction:
    """Play everything; judge what runs in each world, and without privacy, by the best there."""
    settings = frozen_settings("experts", quick)
    outcomes = [
        outcome
        for place in settings["environments"]
        for rounds, epsilon in settings["sizes"]
        for outcome in _outcomes(place, rounds, epsilon, settings)
    ]
    rows, verdicts = [], []
    for world, members in MEMBERS.items():
        inside = [outcome for outcome in outcomes if outcome.world in members]
        names = dict.fromkeys(outcome.algorithm for outcome in inside)
        table = {
            name: standing([outcome for outcome in inside if outcome.algorithm == name])
            for name in names
        }
        for name, found in sorted(table.items(), key=lambda pair: pair[1].merit(world)):
            rows.append([world, name, *(f"{number:.2f}" for number in found[:3]), found.where])
        private = {name: found for name, found in table.items() if not name.startswith(PLAIN)}
        if world == ANY:  # what runs there must promise something
            private = {name: found for name, found in private.items() if _promises(name)}
        plain = {name: found for name, found in table.items() if name.startswith(PLAIN)}
        asked = f"losses={world!r}"
        verdicts.append(_verdict(asked, EXPERT_ALGORITHMS[world][0], private, world, settings))
        if world == ANY:
            own = f"{PLAIN}{Experts(3, 2, 10).algorithm}"
            verdicts.append(_verdict("Experts", own, plain, world, settings))
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
            _points(outcomes),
        ),
    )


def _outcomes(place: JSON, rounds: int, epsilon: float, settings: JSON) -> list[Outcome]:
    environment = world_of(place, rounds)
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
    shown: JSON = {"name": "an expert wakes" if "waking" in place else "classifiers", **place}
    outcomes = []
    for plain in (False, True):
        names = [name for name in policies if name.startswith(PLAIN) == plain]
        floor = settings["floor"] * math.sqrt(experts * rounds / (1.0 if plain else epsilon))
        mean = relative({name: means[name] for name in names}, floor)
        high = relative({name: highs[name] for name in names}, floor)
        size = arms, rounds, epsilon
        outcomes += [
            Outcome(
                *(place["world"], label(shown), size, name, means[name], highs[name]),
                *(mean[name], high[name]),
            )
            for name in names
        ]
    return outcomes


def world_of(place: JSON, rounds: int) -> ExpertEnvironment:
    """Return an environment: one with a name, or one that is made here."""
    if "part" in place:
        return classifiers(place["part"], rounds)
    if "waking" in place:
        size = place["experts"], place["arms"], rounds
        return waking(*size, place["quality"], place["waking"])
    options = {key: value for key, value in place.items() if key not in ("world", "name")}
    size = options.pop("arms", None), rounds, options.pop("experts", None)
    made = make_environment(place["name"], *size, **options)
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
    entry = find(name, advised=True)
    return (entry.over or entry).bound is not None


def _verdict(
    asked: str, name: str, table: dict[str, Standing], world: str, settings: JSON
) -> Verdict:
    """Judge what is chosen by the best of the others."""
    merits = {rival: found.merit(world) for rival, found in table.items()}
    next_best = min((rival for rival in merits if rival != name), key=lambda rival: merits[rival])
    what = "has the least regret on the whole"
    if world == ANY:
        promise = "" if name.startswith(PLAIN) else ", of those with a bound,"
        what = f"has{promise} the least bad worst environment"
    return Verdict(
        f"{asked} runs {name.removeprefix(PLAIN)}, which {what}",
        f"{merits[name]:.2f} times the least; next {next_best}, {merits[next_best]:.2f}",
        f"a factor of {settings['tie']:g}",
        merits[name] <= settings["tie"] * merits[next_best],
    )


def _points(outcomes: list[Outcome]) -> list[Point]:
    """Return geometric means by world and epsilon, and where half of the problems are."""
    points = []
    for world, members in MEMBERS.items():
        cells: dict[tuple[str, float], list[float]] = {}
        for outcome in outcomes:
            if outcome.world in members and not outcome.algorithm.startswith(PLAIN):
                cells.setdefault((outcome.algorithm, outcome.size[2]), []).append(outcome.relative)
        for (name, epsilon), found in cells.items():
            low, high = np.quantile(found, (0.25, 0.75))
            middle = float(np.exp(np.mean(np.log(found))))
            points.append(Point(world, name, epsilon, middle, float(low), float(high)))
    return points
