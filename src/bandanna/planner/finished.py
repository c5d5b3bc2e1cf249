"""How many people a finished log takes, for one look at it, beside a t-test without privacy.

Numbers are computed from the intervals of ``bandanna.one_look`` for what is expected to be
released, and from the normal law of what is then seen. Nobody's outcomes are involved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bandanna._core import checks
from bandanna._core.grid import LossRange
from bandanna._core.types import JSON, InputError, plain
from bandanna.one_look import Arm, OneLook

POWERS = (0.8, 0.95)
MOST = 1e12
FOR_ADJUSTING = 0.97
"""What is left of epsilon where slope and range of an adjustment are given; the rest says what it
gains."""

NONE, PRIVATE, ADJUSTED, BOTH = (
    "t-test, no privacy",
    "private",
    "t-test, adjusted, no privacy",
    "private, adjusted, slope and range given",
)


def check_outcomes(sd: float | None, outcome_range: LossRange, base_rate: float | None) -> None:
    """Require what is said of how much outcomes vary, or how often they are 1."""
    low, high = outcome_range
    if (sd is None) == (base_rate is None):
        raise InputError(
            "give --sd, the standard deviation of outcomes, and --range; or --base-rate."
        )
    if sd is not None and not 0.0 < sd <= (high - low) / 2.0:
        raise InputError(
            f"--sd must be above 0 and at most half of the range, {plain((high - low) / 2)}; "
            f"got {plain(sd)}."
        )
    if base_rate is not None and not 0.0 < base_rate < 1.0:
        raise InputError(f"--base-rate must be between 0 and 1; got {base_rate!r}.")


@dataclass(frozen=True)
class FinishedProblem:
    """An experiment to be planned: one arm is better than the others by a gap.

    Attributes
    ----------
    epsilon, arms, confidence
        As for ``bd.answer``.
    sd, outcome_range
        How much outcomes vary between people, and the range they are counted in.
    base_rate
        Instead of both: how often the other arms succeed.
    correlation
        Of outcomes with what was known before, if that is subtracted.

    Examples
    --------
    >>> lab = FinishedProblem(epsilon=0.5, sd=145.0, outcome_range=(0.0, 1000.0))
    >>> lab.people(30.0, PRIVATE, power=0.8) > lab.people(30.0, NONE, power=0.8)
    True
    """

    epsilon: float
    sd: float | None = None
    outcome_range: LossRange = (0.0, 1.0)
    base_rate: float | None = None
    correlation: float = 0.0
    arms: int = 2
    confidence: float = 0.95

    def __post_init__(self) -> None:
        checks.epsilon(self.epsilon)
        check_outcomes(self.sd, self.outcome_range, self.base_rate)
        if not -1.0 < self.correlation < 1.0:
            raise InputError(f"--correlation must be between -1 and 1; got {self.correlation!r}.")
        checks.whole("arms", self.arms, 2, 1_000)

    @property
    def width(self) -> float:
        """The length of the range."""
        return self.outcome_range[1] - self.outcome_range[0]

    @property
    def widest(self) -> float:
        """The largest gap."""
        return self.width / 2.0 if self.base_rate is None else 1.0 - self.base_rate

    @property
    def level(self) -> float:
        """The error probability of each pair of arms."""
        return 2.0 * (1.0 - self.confidence) / (self.arms * (self.arms - 1))

    def power(self, people: float, gap: float, how: str) -> float:
        """Return how often so many people tell the best arm from all others.

        ``gap`` is in the user's units.
        """
        apart, each = gap / self.width, people / self.arms
        epsilon = 1e9 if how in (NONE, ADJUSTED) else self.epsilon
        less = 1.0 - self.correlation**2 if how in (ADJUSTED, BOTH) else 1.0
        if how == BOTH:
            epsilon *= FOR_ADJUSTING
        first, second = self._arm(each, 0.0, epsilon, less), self._arm(each, apart, epsilon, less)
        binary = self.base_rate is not None and less == 1.0 and how == PRIVATE
        look = OneLook((first, second), "exact" if binary else "normal", binary)
        interval = look.difference(0, 1, self.level)
        radius = apart - interval.low
        return _all_told(apart, radius, first.deviation, second.deviation, self.arms - 1)

    def _arm(self, each: float, more: float, epsilon: float, less: float) -> Arm:
        """Return what is expected of an arm."""
        if self.base_rate is not None:
            mean = min(self.base_rate + more, 1.0)
            spread = mean * (1.0 - mean) * less
        else:
            assert self.sd is not None
            mean, spread = 0.5 + more, (self.sd / self.width) ** 2 * less
        square = spread * (each - 1.0) / each + (mean - 0.5) ** 2
        return Arm(each, each * mean, each * square, 1.0 / epsilon)

    def people(self, gap: float, how: str, power: float) -> int | None:
        """Return how many people show a gap with a probability; None if more than can be."""
        return _least(lambda people: self.power(people, gap, how) >= power)

    def gap(self, people: float, how: str, power: float) -> float | None:
        """Return the gap that so many people show with a probability."""
        low, high = 0.0, self.widest
        if self.power(people, high, how) < power:
            return None
        for _ in range(30):
            middle = 0.5 * (low + high)
            enough = self.power(people, middle, how) >= power
            low, high = (low, middle) if enough else (middle, high)
        return high


def _all_told(apart: float, radius: float, other: float, best: float, others: int) -> float:
    """Return how often the best arm is ahead of all others by more than a radius."""
    from scipy.special import ndtr  # loaded when first used

    nodes, weights = np.polynomial.hermite_e.hermegauss(81)
    ahead = (apart + best * nodes - radius) / max(other, 1e-300)
    return float(weights @ ndtr(ahead) ** others / weights.sum())


def _least(enough: Callable[[float], bool]) -> int | None:
    low, high = 40.0, 80.0
    while not enough(high):
        low, high = high, 2.0 * high
        if high > MOST:
            return None
    return math.ceil(halved(enough, low, high, 1.002))


def halved(enough: Callable[[float], bool], low: float, high: float, ratio: float) -> float:
    """Return the smallest value that is enough, up to a ratio; ``high`` is, and ``low`` is not."""
    while high / low > ratio:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class FinishedPlan:
    """How many people it takes, or what gap so many people show."""

    problem: FinishedProblem
    gap: float | None
    people: float | None
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    """What is asked for, at the two powers, for each way to analyse."""

    @property
    def sentence(self) -> str:
        """The answer in words."""
        of = dict(self.rows)
        people = of[PRIVATE][0]
        if people is None:
            return "No number of people, or no gap in the range, is told four times in five."
        if self.gap is not None:
            base = of[NONE][0] or 1.0
            more = 100.0 * (people / base - 1.0)
            return (
                f"For one look at a finished log, {people:,.0f} people tell a gap of "
                f"{plain(self.gap)} four times in five at epsilon {plain(self.problem.epsilon)}, "
                f"{more:.0f}% more than a t-test without privacy takes."
            )
        return (
            f"For one look at a finished log, {self.people:,.0f} people tell a gap of {people:.3g} "
            f"four times in five at epsilon {plain(self.problem.epsilon)}."
        )

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return {
            "gap": self.gap,
            "people": self.people,
            "epsilon": self.problem.epsilon,
            "confidence": self.problem.confidence,
            "powers": list(POWERS),
            "rows": {how: list(values) for how, values in self.rows},
            "sentence": self.sentence,
        }


def plan_finished(
    problem: FinishedProblem, *, gap: float | None = None, people: float | None = None
) -> FinishedPlan:
    """Plan a finished log: people for a gap, or the gap for people."""
    if (gap is None) == (people is None):
        raise InputError("give --gap, to ask for people; or --people, to ask for the gap.")
    if gap is not None and not 0.0 < gap <= problem.widest:
        most = plain(problem.widest)
        raise InputError(f"--gap must be above 0 and at most {most}; got {plain(gap)}.")

    def asked(how: str, power: float) -> float | None:
        if gap is not None:
            return problem.people(gap, how, power)
        assert people is not None
        return problem.gap(people, how, power)

    ways = [NONE, PRIVATE, *([ADJUSTED, BOTH] if problem.correlation else [])]
    rows = tuple((how, tuple(asked(how, power) for power in POWERS)) for how in ways)
    return FinishedPlan(problem, gap, people, rows)
