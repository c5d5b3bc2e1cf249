"""What released values say of arms: estimates, intervals, and which of two is better.

There is one kind for arms that are played one at a time, and one for phases. Everything that is
said or ranked is computed by them: answers, comparisons, leaders, guardrails. Arms go by their
index, and losses are shares of their range.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bandanna import any_time_normal as normal
from bandanna._core.types import ArmName
from bandanna.any_time_normal import Moments
from bandanna.error_budget import ErrorBudget
from bandanna.inference import (
    ANY_MEAN,
    Floats,
    Interval,
    Law,
    Totals,
    around,
    difference_interval,
    estimate,
    mean_interval,
    still_racing,
)
from bandanna.phase_evidence import PhaseEvidence, phase_evidence

ANY_DIFFERENCE = Interval(-1.0, 1.0)


@dataclass(frozen=True)
class Intervals(ABC):
    """Statements about mean losses, each with its probability of being wrong at any time.

    Where it is known how much outcomes vary they hold by the normal law; what is ``proved`` is said
    while there are too few outcomes for that, and where it is not known.
    """

    law: Law
    totals: Mapping[int, Totals] = field(init=False)
    """What was released of each arm in all."""
    binary: bool = field(default=False, kw_only=True)
    """Whether outcomes are 0 or 1; then squares say nothing more."""
    transitive: ClassVar[bool]
    """Whether arms have an order, so that an arm that is better than a better one is better."""
    of_means: ClassVar[str] = ""
    """What a mean is taken over, if it must be said."""
    of_differences: ClassVar[str] = ""
    """What a difference is taken over, if it must be said."""

    @property
    @abstractmethod
    def moments(self) -> Mapping[int, Moments] | None:
        """The same with squares; None where it is not known how much outcomes vary."""

    @property
    @abstractmethod
    def proved(self) -> Intervals:
        """What can be said without knowing how much outcomes vary."""

    @property
    def approximate(self) -> bool:
        """Whether they hold by the normal approximation; otherwise they are proved."""
        return self.moments is not None

    @property
    def known(self) -> Collection[int]:
        """The arms of which something was released."""
        return self.totals.keys()

    def estimate(self, arm: int) -> float:
        """Return the estimated mean loss of an arm."""
        return estimate(self.totals[arm])

    def mean(self, arm: int, error: float) -> Interval:
        """Return the interval of an arm's mean loss, with this error probability on both sides."""
        if self.moments is None:
            return mean_interval(self.law, self.totals[arm], error)
        others = [one for other, one in self.moments.items() if other != arm]
        kind = self.law.scale, self.binary
        interval = normal.mean_interval(self.moments[arm], others, *kind, error)
        return interval if interval != ANY_MEAN else self.proved.mean(arm, normal.EARLY * error)

    @abstractmethod
    def apart(self, a: int, b: int) -> float | None:
        """Return the estimate of b's mean loss minus a's; None where they were never compared."""

    @abstractmethod
    def difference(self, a: int, b: int, error: float) -> Interval:
        """Return the interval of b's mean loss minus a's, with this error on each side."""

    def better(self, a: int, b: int, error: float, margin: float = 0.0) -> bool:
        """Whether a's mean loss is below b's plus a margin."""
        return self.difference(a, b, error).low > -margin

    def unbeaten(self, arms: Sequence[int], errors: Floats) -> list[int]:
        """Return the arms than which no other is better; ``errors`` of pairs, by the newer arm."""
        known = [arm for arm in arms if arm in self.known]

        def beaten(arm: int) -> bool:
            return any(
                self.better(other, arm, float(errors[max(arm, other)]))
                for other in known
                if other != arm
            )

        return [arm for arm in arms if arm not in self.known or not beaten(arm)]

    @abstractmethod
    def turned_over(self) -> Self:
        """Return the same of the other end of the range: of 1 minus the losses."""


@dataclass(frozen=True)
class AnyTime(Intervals):
    """Confidence sequences for arms whose outcomes do not change over time."""

    totals: Mapping[int, Totals]
    squares: Mapping[int, float] | None = None
    """Released sums of squares around mid-range, by arm."""
    transitive: ClassVar[bool] = True

    @cached_property
    def moments(self) -> dict[int, Moments] | None:
        """What was released of each arm, with its squares."""
        if self.squares is None:
            return None
        return {
            arm: Moments(one.total, self.squares[arm], one.terms, one.releases)
            for arm, one in self.totals.items()
        }

    @property
    def proved(self) -> Self:
        """What can be said without squares."""
        return replace(self, squares=None)

    def apart(self, a: int, b: int) -> float | None:
        """Return the estimate of b's mean loss minus a's."""
        return self.estimate(b) - self.estimate(a)

    def difference(self, a: int, b: int, error: float) -> Interval:
        """Return the interval of b's mean loss minus a's."""
        if self.moments is None:
            return difference_interval(self.law, self.totals[a], self.totals[b], 2.0 * error)
        first, second = self.moments[a], self.moments[b]
        level = normal.one_sided(error)
        radius = normal.pair_once(first, second, self.law.scale, self.binary, level)
        if math.isinf(radius):
            return self.proved.difference(a, b, normal.EARLY * error)
        away = second.total / second.terms - first.total / first.terms
        return around(away, radius, -1.0, 1.0)

    def unbeaten(self, arms: Sequence[int], errors: Floats) -> list[int]:
        """Return the arms than which no other is better, in one compiled call."""
        known, moments = [arm for arm in arms if arm in self.totals], self.moments
        if moments is None:
            kept = still_racing(self.law, [self.totals[arm] for arm in known], errors[known])
        else:
            kind = self.law.scale, self.binary
            kept = normal.still_racing([moments[arm] for arm in known], *kind, errors[known])
        gone = {arm for arm, stays in zip(known, kept, strict=True) if not stays}
        left = [arm for arm in arms if arm not in gone]
        if moments is not None and any(moments[arm].terms < normal.FEWEST for arm in known):
            early = self.proved.unbeaten(left, normal.EARLY * errors)
            left = [arm for arm in left if arm in early or moments[arm].terms > normal.FEWEST]
        return left

    def turned_over(self) -> Self:
        """Return the same of 1 minus the losses."""
        turned = {
            arm: one._replace(total=one.terms - one.total) for arm, one in self.totals.items()
        }
        return replace(self, totals=turned)


@dataclass(frozen=True)
class InPhases(Intervals):
    """Statements from phases, for any losses that were fixed in advance.

    An arm's mean is over its own rounds. A difference is the average of the phases in which both
    arms were played, weighed by how precisely each phase tells it: what moves all arms together
    cancels.
    """

    counts: Floats
    sums: Floats
    """Rounds and released sums of every phase (row) and arm (column)."""
    squares: Floats | None = None
    """The same of squares around mid-range."""
    transitive: ClassVar[bool] = False
    of_means: ClassVar[str] = "over its own rounds"
    of_differences: ClassVar[str] = "on average over the phases that played both"

    def __post_init__(self) -> None:
        times = (self.counts > 0).sum(axis=0)
        sums, rounds = self.sums.sum(axis=0), self.counts.sum(axis=0)
        totals = {
            arm: Totals(float(sums[arm]), float(rounds[arm]), float(often))
            for arm, often in enumerate(times)
            if often > 0
        }
        object.__setattr__(self, "totals", totals)

    @cached_property
    def moments(self) -> dict[int, Moments] | None:
        """What was released of each arm in all, with its squares."""
        if self.squares is None:
            return None
        squares = self.squares.sum(axis=0)
        return {
            arm: Moments(one.total, float(squares[arm]), one.terms, one.releases)
            for arm, one in self.totals.items()
        }

    @cached_property
    def proved(self) -> Self:
        """What can be said without squares."""
        return replace(self, squares=None)

    def apart(self, a: int, b: int) -> float | None:
        """Return the phases' estimate of b's mean loss minus a's."""
        if self.moments is None:
            evidence = self.evidence_of(a, b)
            return None if evidence is None else evidence.difference
        both, rows = self._both(a, b)
        if not both.size:
            return None
        pair = self.moments[a], self.moments[b]
        weights, _ = normal.phase_weights(both, pair, self.law.scale, self.binary)
        away = self.sums[rows, b] / both[:, 1] - self.sums[rows, a] / both[:, 0]
        return min(max(float(weights @ away / weights.sum()), -1.0), 1.0)

    def difference(self, a: int, b: int, error: float) -> Interval:
        """Return the interval of the average difference over phases that played both."""
        away = self.apart(a, b)
        if away is None:
            return ANY_DIFFERENCE
        if self.moments is None:
            evidence = self.evidence_of(a, b)
            assert evidence is not None, "phases played both"
            return evidence.interval(error)
        both, _ = self._both(a, b)
        pair, level = (self.moments[a], self.moments[b]), normal.one_sided(error)
        radius = normal.phase_radius(both, pair, self.law.scale, self.binary, level)
        if math.isinf(radius):
            return self.proved.difference(a, b, normal.EARLY * error)
        return around(away, radius, -1.0, 1.0)

    def until(self, phases: int) -> Self:
        """Return what the first phases said."""
        squares = None if self.squares is None else self.squares[:phases]
        return replace(self, counts=self.counts[:phases], sums=self.sums[:phases], squares=squares)

    def evidence_of(self, a: int, b: int) -> PhaseEvidence | None:
        """Return what phases that played both say of their difference."""
        if (a, b) not in self._pairs:
            evidence = phase_evidence(self.counts, self.sums, a, b, scale=self.law.scale)
            self._pairs[a, b] = evidence
        return self._pairs[a, b]

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], PhaseEvidence | None]:
        """What was computed of pairs so far."""
        return {}

    def turned_over(self) -> Self:
        """Return the same of 1 minus the losses."""
        return replace(self, sums=self.counts - self.sums)

    def _both(self, a: int, b: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the rounds of two arms in the phases that played both, and which these are."""
        rows = (self.counts[:, a] > 0) & (self.counts[:, b] > 0)
        return self.counts[rows][:, [a, b]], rows


class Known(NamedTuple):
    """What was released, as answers are made from it."""

    names: tuple[ArmName, ...]
    rounds: Mapping[int, float]
    """How many rounds each arm's releases hold."""
    intervals: Intervals | None
    """What they say; None where they say nothing about means."""

    @property
    def told(self) -> Collection[int]:
        """The arms of which something is known."""
        return () if self.intervals is None else self.intervals.known


# --- which arm is best --------------------------------------------------------------------------


class Standing(NamedTuple):
    """Which arms may be the best, by index, and which one is."""

    racing: tuple[int, ...]
    best: int | None


def standing(
    intervals: Intervals | None, budget: ErrorBudget, running: Sequence[int], arms: int
) -> Standing:
    """Return which of the running arms may be the best of them.

    Of the ``arms`` that there ever were, one is best whatever was retired since, so arms leave at
    the level for the best one. If an arm that was retired may be it, and where arms have been
    added, or have no order, what is said of pairs decides.
    """
    if intervals is None:
        return Standing(tuple(running), None)
    if budget.best > 0.0 and arms == budget.first:
        left = intervals.unbeaten(range(arms), np.full(arms, budget.best))
        if set(left) <= set(running):
            return Standing(tuple(left), left[0] if len(left) == 1 and arms > 1 else None)
    left = intervals.unbeaten(running, budget.of_pairs(arms))
    if not left:  # each is worse than another, on averages over different phases
        return Standing(tuple(running), None)
    if len(left) > 1 or len(running) < 2:
        return Standing(tuple(left), None)
    best = left[0]
    sure = intervals.transitive or all(
        intervals.better(best, arm, budget.pair(best, arm)) for arm in running if arm != best
    )
    return Standing((best,), best if sure else None)


def leader_of(intervals: Intervals, among: Sequence[int]) -> int | None:
    """Return the arm that no other looks better than, by the estimates that are printed.

    Where each looks worse than another, the one that looks the least worse.
    """
    known = [arm for arm in among if arm in intervals.known]
    if not known:
        return None
    if intervals.transitive:
        return min(known, key=intervals.estimate)

    def behind(arm: int, other: int) -> float:
        return -(intervals.apart(arm, other) or 0.0)

    first = known[0]
    for arm in known[1:]:
        first = arm if behind(first, arm) > 0.0 else first

    def worst(arm: int) -> float:
        return max((behind(arm, other) for other in known if other != arm), default=0.0)

    return first if worst(first) <= 0.0 else min(known, key=worst)
