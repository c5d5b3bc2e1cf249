"""What regret to expect on losses like these, at their size and in their units, by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from bandanna._core.grid import LossRange
from bandanna._core.types import JSON, InputError
from bandanna.algorithms import ALGORITHMS, DEFAULT, algorithms
from bandanna.environments import Environment
from bandanna.planner.plan import AB_TEST, plan
from bandanna.policy import Policy
from bandanna.simulation.arguments import batch_in_effort, seconds_of
from bandanna.simulation.baselines import (
    NO_PRIVACY,
    make_policy,
    same_learner,
    shown_name,
    strongest,
)
from bandanna.simulation.results import Results
from bandanna.simulation.runs import simulate
from bandanna.spec import Problem

RUNS, FEW = 40, 6
MOST_STEPS = 3e9
"""Runs times batches times arms of one algorithm, some ten seconds; more is not looked at."""

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
    same: str = ""
    """The learner of the best private algorithm, without privacy; empty where there is none."""
    same_regret: float | None = None
    """Its regret for 1,000 rounds."""
    arm: str = ""
    """The best arm, where it has a name."""

    @property
    def advice(self) -> str:
        """What to run and what to expect of it, in a sentence."""
        if not self.beats:
            return self.words
        row = next(row for row in self.rows if row.algorithm == self.best)
        named = "" if self.best == DEFAULT else f', algorithm="{self.best}"'
        return (
            f"Run bd.PrivateBandit(arms, epsilon, rounds{named}): expect it to lose "
            f"{short(row.regret)} per 1,000 rounds against the best arm, where choosing at random "
            f"loses {short(self.uniform)}."
        )

    @property
    def words(self) -> str:
        """The answer in a sentence or two."""
        if not self.beats:
            start = (
                f"from about {_rough(self.beats_from)} it does"
                if self.beats_from
                else f"nor in {_rough(self.looked_until)}, as far as we looked"
            )
            return (
                f"In {_rough(self.rounds)} rounds no private algorithm here beats choosing at "
                f"random; {start}."
            )
        row = next(row for row in self.rows if row.algorithm == self.best)
        plain = [row for row in self.rows if row.algorithm == NO_PRIVACY]
        prices = []
        if self.same_regret is not None:
            learner = "" if self.same == self.best else f", {self.same},"
            prices.append(f"the same algorithm{learner} {short(self.same_regret)}")
        prices += [f"the strongest, {self.plain}, {short(row.regret)}" for row in plain]
        without = f"without privacy: {', '.join(prices)}; " if prices else ""
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"Expect {self.best} to lose {short(row.regret)}{unit} per 1,000 rounds against the "
            f"best arm{self.arm and f', {self.arm}'} ({without}at random {short(self.uniform)}). "
            f"In {row.found:.0%} of the runs it plays {self.arm or 'the best arm'} most."
        )

    def shown(self, algorithm: str) -> str:
        """Return what a row is called."""
        return shown_name(algorithm, self.plain)

    def to_dict(self) -> JSON:
        """Return the forecast with stable keys."""
        rows = [row._asdict() for row in self.rows]
        return {**vars(self), "rows": rows, "words": self.words}


def forecast(problem: Problem, make: MakeEnvironment, *, unit: str = "", seed: int = 0) -> Forecast:
    """Simulate the likeliest candidates, and what is recommended for longer if need be.

    Parameters
    ----------
    problem
        Arms, rounds and epsilon.
    make
        Makes the environment for a number of rounds.
    unit
        What losses are counted in.
    seed
        Makes it repeatable.
    """
    rounds = problem.horizon("a simulation")
    if problem.with_experts:
        raise InputError("what to expect is simulated without experts; leave out --experts.")
    here = make(rounds)
    policies = _candidates(problem, here.loss_range)
    if not policies:
        raise InputError(f"{problem} would take too long to simulate; try fewer rounds.")
    if NO_PRIVACY in policies:
        policies[NO_PRIVACY] = strongest(here, seed=seed, most_seconds=MOST_BASELINE)
    results = simulate(policies, here, replicates=RUNS, seed=seed)
    rows = sorted((_row(results, name) for name in policies), key=lambda row: row.regret)
    best = _recommended([row for row in rows if row.algorithm != NO_PRIVACY])
    beats = _beats(results, best)
    beats_from = rounds if beats else None
    size = float(rounds)
    looked_until = rounds
    while beats_from is None and (size := size * GROWTH) <= 1e11:
        larger = problem.but(rounds=round(size))
        policy = make_policy(best, larger, loss_range=here.loss_range)
        if _steps(policy, larger, FEW) > MOST_STEPS:
            break
        looked_until = round(size)
        longer = simulate(policy, make(looked_until), replicates=FEW, seed=seed)
        if _beats(longer, "policy"):
            beats_from = looked_until
    uniform = 1000.0 * float(results.uniform_regret[-1]) / rounds
    when = beats_from, looked_until
    plain = policies[NO_PRIVACY].algorithm if NO_PRIVACY in policies else ""
    same = _same(best, here, seed) if plain else ("", None)
    arm = ""
    if results.best_arm is not None and results.arm_names:
        arm = str(results.arm_names[results.best_arm])
    return Forecast(rounds, rows, uniform, best, beats, *when, unit, plain, *same, arm)


def _recommended(rows: list[ForecastRow]) -> str:
    """Return the algorithm with the least regret; the default where it is about as good."""
    best = rows[0]
    for row in rows:
        if row.algorithm == DEFAULT:
            slack = 2.0 * math.hypot(row.error, best.error)
            if row.regret <= max(AS_GOOD * best.regret, best.regret + slack):
                return DEFAULT
    return best.algorithm


def _same(best: str, here: Environment, seed: int) -> tuple[str, float | None]:
    """Return the best algorithm's learner without privacy, and its regret for 1,000 rounds."""
    policy = same_learner(best, here)
    if policy is None or seconds_of([policy], here.rounds) > MOST_BASELINE:
        return "", None
    results = simulate(policy, here, replicates=RUNS, seed=seed, checkpoints=1)
    return policy.algorithm, 1000.0 * float(results.regret("policy").mean()) / here.rounds


def _candidates(problem: Problem, loss_range: LossRange) -> dict[str, Policy]:
    """Return ours, each world's, the smallest guarantee's and no privacy's, if not too long.

    Also the plain A/B test and dp-klucb.
    """
    ours = [
        row.name for row in algorithms(with_experts=False) if row.private and row.source == "ours"
    ]
    names = [*ours, *(name for name, _ in ALGORITHMS.values())]
    names += [AB_TEST, "dp-klucb", plan(problem).best.algorithm, NO_PRIVACY]
    policies = {}
    for name in dict.fromkeys(names):
        try:
            policy = make_policy(name, problem, loss_range=loss_range)
        except InputError:  # too few rounds for it, say
            continue
        if _steps(policy, problem, RUNS) <= MOST_STEPS:
            policies[name] = policy
    return policies if set(policies) - {NO_PRIVACY} else {}


def _steps(policy: Policy, problem: Problem, runs: int) -> float:
    arms, rounds, _ = problem.size
    each = arms**2 if policy.recipe.learner.name == "ftpl" else 5 + arms
    return runs * rounds / batch_in_effort(policy.recipe) * each


def _row(results: Results, name: str) -> ForecastRow:
    regret = results.regret(name) * 1000.0 / results.rounds
    uniform = 1000.0 * float(results.uniform_regret[-1]) / results.rounds
    mean = float(regret.mean())
    error = float(regret.std(ddof=1) / math.sqrt(regret.size))
    learned = 1.0 - mean / uniform if uniform > 0 else math.nan
    return ForecastRow(name, mean, error, learned, float(results.found(name)[-1]))


def _beats(results: Results, name: str) -> bool:
    regret = results.regret(name)
    error = float(regret.std(ddof=1)) / math.sqrt(regret.size)
    return float(regret.mean()) + 3.0 * error < BEATS * float(results.uniform_regret[-1])


def short(number: float) -> str:
    """Write a number with three digits, and large ones in full."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _rough(rounds: int) -> str:
    """Say a number as one does: two digits are enough."""
    if rounds >= 1_000_000:
        return f"{float(f'{rounds / 1e6:.2g}'):g} million"
    return f"{round(float(f'{rounds:.2g}')):,}"
