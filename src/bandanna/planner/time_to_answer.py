"""How many people until one is sure which arm is best, and the same question asked backwards.

Races are run on simulated losses, batch by batch, so that a race of a million rounds takes no
longer than one of a thousand. They rest on what ``goal="answer"`` rests on: how much outcomes vary,
by the normal approximation. Nobody's feedback is involved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.grid import LossRange
from bandanna._core.streams import new_stream
from bandanna._core.types import JSON, InputError, plain
from bandanna.inference import law_of
from bandanna.learners.race import Race, run_race
from bandanna.planner.finished import check_outcomes, halved
from bandanna.theory.stationary import race_opening

RUNS = 100
POWER = 0.8
"""How often so many people must be enough for a gap, or an epsilon, to be stated."""
MOST = 1e10
"""Rounds after which a race is given up."""
RACE, UNIFORM, PLAIN = "race", "uniform allocation", "no privacy"


@dataclass(frozen=True)
class AnswerProblem:
    """An experiment that is to be planned: one arm succeeds more often than the others.

    Attributes
    ----------
    arms, epsilon, confidence
        As for ``PrivateBandit`` with ``goal="answer"``.
    gap
        How much more often the best arm succeeds.
    base_rate
        How often the others succeed.
    sd, outcome_range
        Instead: how much outcomes vary between people, and the range they are counted in. The gap
        is in their units.
    """

    arms: int
    epsilon: float
    gap: float
    base_rate: float | None = None
    confidence: float = 0.95
    sd: float | None = None
    outcome_range: LossRange = (0.0, 1.0)

    def __post_init__(self) -> None:
        checks.set_fields(self, arms=checks.arms(self.arms), epsilon=checks.epsilon(self.epsilon))
        checks.within("confidence", self.confidence, 0.5, 1.0 - 1e-9)
        check_outcomes(self.sd, self.outcome_range, self.base_rate)
        if not 0.0 < self.gap <= self.widest:
            most = "half of the range" if self.base_rate is None else "1 - base_rate"
            raise InputError(
                f"gap must be above 0 and at most {most}, {plain(self.widest)}; "
                f"got {plain(self.gap)}."
            )

    @property
    def width(self) -> float:
        """The length of the range."""
        return self.outcome_range[1] - self.outcome_range[0]

    @property
    def widest(self) -> float:
        """The largest gap."""
        return self.width / 2.0 if self.base_rate is None else 1.0 - self.base_rate

    @property
    def losses(self) -> NDArray[np.float64]:
        """The arms' mean losses, the best first, as parts of the range."""
        means = np.full(self.arms, 0.5 if self.base_rate is None else 1.0 - self.base_rate)
        means[0] -= self.gap / self.width
        return means

    @property
    def varies(self) -> float:
        """The standard deviation of losses as a part of the range; 0 where they are 0 or 1."""
        return 0.0 if self.sd is None else self.sd / self.width


@dataclass(frozen=True)
class TimeToAnswer:
    """How many rounds races took."""

    how: str
    mean: float
    most: float
    """Nine of ten were done by then."""
    wrong: float
    """Share in which the best arm left the race, after so many rounds."""
    told: float = 1.0
    """Share in which the best arm was named before races were given up."""

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return {name: value for name, value in vars(self).items() if name != "told"}


@dataclass(frozen=True)
class AnswerPlan:
    """How many people until one is sure."""

    problem: AnswerProblem
    rows: tuple[TimeToAnswer, ...]
    detectable: float | None = None
    """The smallest gap that so many people tell with probability ``POWER``, where it was asked."""
    smallest_epsilon: float | None = None
    """The smallest epsilon with which they tell the gap as often, where it was asked."""
    people: int | None = None

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        race, _, without = self.rows
        said = (
            f"About {_about(race.mean)} people until the best arm is known, "
            f"{100 * self.problem.confidence:.4g}% sure; nine times in ten at most "
            f"{_about(race.most)}. Without privacy about {_about(without.mean)}."
        )
        if self.people is None:
            return said
        people = f"{self.people:,} people"
        gap, least = self.detectable, self.smallest_epsilon
        said += f" With {people} at epsilon {self.problem.epsilon:g} "
        often = f"with probability {POWER:g}"
        said += f"no gap is told {often}" if gap is None else f"a gap of {gap:.2g} is told {often}"
        if least is None:
            return f"{said}; no epsilon up to 100 tells a gap of {self.problem.gap:g} so often."
        return f"{said}; a gap of {self.problem.gap:g} from epsilon {least:.2g} on."

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return {
            "problem": vars(self.problem),
            "rows": [row.to_dict() for row in self.rows],
            "people": self.people,
            "detectable_gap": self.detectable,
            "smallest_epsilon": self.smallest_epsilon,
            "power": None if self.people is None else POWER,
            "sentence": self.sentence,
        }


def plan_answer(problem: AnswerProblem, people: int | None = None, runs: int = RUNS) -> AnswerPlan:
    """Return how long races take, and with ``people`` which gap and which epsilon they suffice for.

    Examples
    --------
    >>> found = plan_answer(AnswerProblem(arms=2, epsilon=0.5, gap=0.1, base_rate=0.6))
    >>> 1_050 < found.rows[0].mean < 1_700
    True
    """
    rows = tuple(time_to_answer(problem, how, runs) for how in (RACE, UNIFORM, PLAIN))
    if people is None:
        return AnswerPlan(problem, rows)

    def enough(**changes: float) -> bool:
        asked = replace(problem, **changes)  # type: ignore[arg-type]
        return time_to_answer(asked, RACE, runs, most=float(people)).told >= POWER

    widest = problem.widest
    gap = _smallest(lambda gap: enough(gap=gap), widest * 1e-5, widest)
    least = _smallest(lambda epsilon: enough(epsilon=epsilon), 1e-6, 100.0)
    return AnswerPlan(problem, rows, gap, least, people)


def time_to_answer(
    problem: AnswerProblem, how: str = RACE, runs: int = RUNS, most: float = MOST
) -> TimeToAnswer:
    """Return how many rounds races took: adaptive, with all arms played alike, or without noise.

    Races that are not done after ``most`` rounds count as that many.
    """
    asked = problem.epsilon, problem.confidence, how, runs, most
    return race_for(problem.losses, *asked, sd=problem.varies)


def race_for(
    means: NDArray[np.float64],
    epsilon: float,
    confidence: float = 0.95,
    how: str = RACE,
    runs: int = RUNS,
    most: float = MOST,
    *,
    sd: float = 0.0,
    proved: bool = False,
) -> TimeToAnswer:
    """Return the same for arms with any mean losses, the best first.

    Losses are 0 or 1, or vary by ``sd``. With ``proved`` evidence is as for ``interval="proved"``.
    """
    kinds = ("proved", "bounded") if proved else ("binary", "squares")
    evidence, opening = kinds[int(sd > 0.0)], race_opening(epsilon)
    learner = Race(
        *(means.size, epsilon, confidence),
        evidence=evidence,
        opening=opening,
        uniform=how == UNIFORM,
    )
    params, scale = learner.params(), 1.0 / epsilon
    if how == PLAIN:
        params, scale = params._replace(law=law_of(), squares=law_of(), first=2, noise=0.0), 0.0
    took, wrong, told = [], 0, 0
    for run in range(runs):
        state = learner.start()
        raced = run_race(params, state, means, sd, scale, float(most), new_stream(run))
        took.append(raced if raced >= 0.0 else most)
        wrong += int(state.racing[0] == 0.0)
        told += int(0.0 <= raced <= most and state.racing[0] > 0.0)
    mean, late = float(np.mean(took)), float(np.quantile(took, 0.9))
    return TimeToAnswer(how, mean, late, wrong / runs, told / runs)


def _smallest(enough: Callable[[float], bool], low: float, high: float) -> float | None:
    """Return the smallest value that is enough, to about 3%, by halving on a logarithmic scale."""
    if not enough(high):
        return None
    return low if enough(low) else halved(enough, low, high, 1.03)


def _about(count: float) -> str:
    """Write a number to two digits: it is an estimate."""
    digits = max(0, len(str(int(count))) - 2)
    return f"{round(count, -digits):,.0f}"
