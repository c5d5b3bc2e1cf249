"""What regret to expect on losses like these, at their size and in their units, by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from bandanna._core.grid import LossRange
from bandanna._core.types import JSON, InputError
from bandanna.algorithms import ALGORITHMS, DEFAULT, algorithms, find
from bandanna.environments import Environment
from bandanna.planner.plan import AB_TEST, plan
from bandanna.policy import Policy
from bandanna.policy.facade import Bandit, PrivateBandit
from bandanna.simulation.arguments import run_seconds
from bandanna.simulation.baselines import (
    NO_PRIVACY,
    make_policy,
    shown_name,
    strongest,
)
from bandanna.simulation.results import Results, statistics
from bandanna.simulation.runs import simulate
from bandanna.spec import Losses, Problem
from bandanna.theory.phases import few_rounds

RUNS, LEAST_RUNS, FEW = 200, 20, 6
ROUNDS = 4e6
"""Rounds that are simulated of each algorithm in all its runs, about."""
EFFORT, FEWEST = 0.6, 3
"""Seconds that all runs of an algorithm are to take, by a guess, and the runs where one is slow."""
QUICK, PATIENT = 2.0, 20.0
"""The same at most, where nothing was said and where something was; longer is not simulated."""

MOST_BASELINE = 0.5
"""Seconds that a run of a learner without privacy may take."""
AS_GOOD = 1.1
"""The default is recommended where it loses at most so many times the least."""

GROWTH = math.sqrt(10.0)
BEATS = 0.95
"""An algorithm beats choosing at random when it has clearly less than this share of its regret."""

MakeEnvironment = Callable[[int], Environment]
"""Makes an environment of so many rounds."""


class ForecastRow(NamedTuple):
    """One algorithm at the size that was asked for; regret for 1,000 rounds, in people's units."""

    algorithm: str
    regret: float
    error: float
    learned: float
    """Share of the distance between choosing at random and the best arm."""
    found: float
    """Share of the runs in which the best arm is the one played most."""


@dataclass(frozen=True)
class Forecast:
    """What to expect, in the order of regret, and from when on it is worth the trouble."""

    rounds: int
    rows: list[ForecastRow]
    uniform: float
    """Regret of choosing at random, for 1,000 rounds."""
    best: str
    """What is recommended: the private algorithm with the smallest regret, or the default where it
    is about as good."""
    beats: bool
    """Whether it is clearly better than choosing at random."""
    beats_from: int | None
    """From about how many rounds on it is; None where that was not found."""
    looked_until: int
    """How many rounds were tried at most."""
    unit: str = ""
    plain: str = ""
    """The learner that no privacy stands for: the strongest here."""
    arm: str = ""
    """The best arm, where it has a name."""
    epsilon: float = math.inf
    runs: str = DEFAULT
    """What runs for what was said of losses."""
    losses: str | None = None
    """What was said of them."""
    world: str = ""
    """What was simulated, where nothing was said of it."""
    range_advice: str = ""
    """Whether the range of a log is too wide."""
    least_private: float | None = None
    """What no private policy that is good on all steady losses goes below in long runs."""

    @property
    def advice(self) -> str:
        """What to run and what to expect of it, in a sentence."""
        if not self.beats:
            needs = (
                f"this needs about {_rough(self.beats_from)} people"
                if self.beats_from
                else f"even {_rough(self.looked_until)} people are too few"
            )
            return (
                f"In {_rough(self.rounds)} rounds no private algorithm here beats choosing at "
                f"random: at epsilon {self.epsilon:g} {needs}."
            )
        regrets = {row.algorithm: row.regret for row in self.rows}
        named = "" if self.losses is None else f', losses="{self.losses}"'
        if self.best != self.runs:
            named = f', algorithm="{self.best}"'
        others = {AB_TEST: "a plain A/B test", NO_PRIVACY: "a learner without privacy"}
        beside = [
            f"{what} loses {short(regrets[name])}"
            for name, what in others.items()
            if name in regrets and name != self.best
        ]
        beside.append(f"choosing at random {short(self.uniform)}")
        unit = f" {self.unit}" if self.unit else ""
        arm = f", {self.arm}" if self.arm else ""
        return (
            f"Run bd.PrivateBandit(arms, epsilon, rounds{named}): expect it to lose "
            f"{short(regrets[self.best])}{unit} per 1,000 rounds against the best arm{arm}; "
            f"{', '.join(beside)}."
        )

    def shown(self, algorithm: str) -> str:
        """Return what a row is called."""
        shown = shown_name(algorithm, self.plain)
        return f"{shown} (default)" if algorithm == DEFAULT == self.runs else shown

    def to_dict(self) -> JSON:
        """Return the forecast with stable keys."""
        rows = [row._asdict() for row in self.rows]
        return {**vars(self), "rows": rows, "words": self.advice}


def forecast(
    problem: Problem,
    make: MakeEnvironment,
    *,
    unit: str = "",
    losses: Losses | None = None,
    everything: bool = False,
    most_seconds: float = PATIENT,
    seed: int = 0,
) -> Forecast:
    """Simulate what runs, the plain A/B test and no privacy; what is recommended also for longer.

    Parameters
    ----------
    problem
        Arms, rounds and epsilon.
    make
        Makes the environment for a number of rounds.
    unit
        What losses are counted in.
    losses
        What was said of them.
    everything
        Simulate all algorithms that are likely to do well.
    most_seconds
        That an algorithm may take, by a guess: those that take longer are left out.
    seed
        Makes it repeatable.
    """
    rounds = problem.horizon("a simulation")
    if problem.with_experts:
        raise InputError("what to expect is simulated without experts; leave out --experts.")
    here = make(rounds)
    runs = DEFAULT if losses is None else ALGORITHMS[losses][0]
    policies = _candidates(problem, here.loss_range, losses, everything, most_seconds)
    if not policies:
        raise InputError(f"{problem} would take too long to simulate; try fewer rounds.")
    if NO_PRIVACY in policies:
        same = find(runs, with_experts=False).learner
        policies[NO_PRIVACY] = (
            strongest(here, seed=seed, most_seconds=MOST_BASELINE)
            if everything
            else Bandit(problem.arms, same, rounds, loss_range=here.loss_range)
        )
    count = min(_runs(policy, problem) for policy in policies.values())
    results = simulate(policies, here, replicates=count, seed=seed, checkpoints=1)
    rows = sorted((_row(results, name) for name in policies), key=lambda row: row.regret)
    best = _recommended([row for row in rows if row.algorithm != NO_PRIVACY], runs)
    beats = _beats(results, best)
    beats_from = rounds if beats else None
    size = float(rounds)
    looked_until = rounds
    while beats_from is None and (size := size * GROWTH) <= 1e11:
        larger = problem.but(rounds=round(size))
        policy = make_policy(best, larger, loss_range=here.loss_range)
        count = min(FEW, _runs(policy, larger))
        if count * _seconds(policy, larger) > QUICK:
            break
        looked_until = round(size)
        if few_rounds(larger):
            continue
        longer = simulate(policy, make(looked_until), replicates=count, seed=seed, checkpoints=1)
        if _beats(longer, "policy"):
            beats_from = looked_until
    arm, names = results.best_arm, results.arm_names
    return Forecast(
        rounds,
        rows,
        1000.0 * float(results.uniform_regret[-1]) / rounds,
        best,
        beats,
        beats_from,
        looked_until,
        unit=unit,
        plain=policies[NO_PRIVACY].algorithm if NO_PRIVACY in policies else "",
        arm="" if arm is None or not names else names[arm],
        epsilon=problem.epsilon,
        runs=runs,
        losses=losses,
    )


def _runs(policy: Policy, problem: Problem) -> int:
    """Return how many runs are played: fewer of what is slow."""
    usual = min(max(round(ROUNDS / problem.horizon("a simulation")), LEAST_RUNS), RUNS)
    return min(usual, max(round(EFFORT / _seconds(policy, problem)), FEWEST))


def _recommended(rows: list[ForecastRow], runs: str) -> str:
    """Return the algorithm with the least regret; what runs where it is about as good."""
    best = rows[0]
    for row in rows:
        if row.algorithm == runs:
            slack = 2.0 * math.hypot(row.error, best.error)
            if row.regret <= max(AS_GOOD * best.regret, best.regret + slack):
                return runs
    return best.algorithm


def _candidates(
    problem: Problem,
    loss_range: LossRange,
    losses: Losses | None,
    everything: bool,
    most_seconds: float,
) -> dict[str, Policy]:
    """Return what runs, the plain A/B test and no privacy, if not too long; or all of ours."""
    runs = PrivateBandit(
        problem.arms, problem.epsilon, problem.rounds, losses=losses, loss_range=loss_range
    )
    names = [AB_TEST, NO_PRIVACY]
    if everything:
        rows = algorithms(with_experts=False)
        names += [row.name for row in rows if row.private and row.source == "ours"]
        names += ["dp-klucb", plan(problem).best.algorithm]
    policies: dict[str, Policy] = {runs.algorithm: runs}
    for name in names:
        if name not in policies:
            with suppress(InputError):  # too few rounds for it, say
                policies[name] = make_policy(name, problem, loss_range=loss_range)
    short = {
        name: policy
        for name, policy in policies.items()
        if _runs(policy, problem) * _seconds(policy, problem) <= most_seconds
    }
    return short if set(short) - {NO_PRIVACY} else {}


def _seconds(policy: Policy, problem: Problem) -> float:
    """Guess how long a run takes."""
    arms, rounds, _ = problem.size
    guess = run_seconds(policy.recipe, rounds, arms, None)
    return guess * arms if policy.recipe.learner.name == "ftpl" else guess


def _row(results: Results, name: str) -> ForecastRow:
    regret = statistics(results.regret(name) * 1000.0 / results.rounds)
    uniform = 1000.0 * float(results.uniform_regret[-1]) / results.rounds
    mean, error = regret["mean"], regret["standard_error"]
    learned = 1.0 - mean / uniform if uniform > 0 else math.nan
    return ForecastRow(name, mean, error, learned, float(results.found(name)[-1]))


def _beats(results: Results, name: str) -> bool:
    regret, uniform = statistics(results.regret(name)), float(results.uniform_regret[-1])
    return regret["mean"] + 3.0 * regret["standard_error"] < BEATS * uniform


def short(number: float) -> str:
    """Write a number with three digits, and large ones in full."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _rough(rounds: int) -> str:
    """Say a number as one does: two digits are enough."""
    if rounds >= 1_000_000:
        return f"{float(f'{rounds / 1e6:.2g}'):g} million"
    return f"{round(float(f'{rounds:.2g}')):,}"
