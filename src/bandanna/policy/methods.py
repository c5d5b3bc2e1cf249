"""How totals of released values become statements about means, and what is assumed for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bandanna._core.types import ArmName
from bandanna.inference import (
    Interval,
    Law,
    Totals,
    difference_interval,
    fixed_below,
    fixed_difference_interval,
    fixed_mean_interval,
    is_below,
    mean_interval,
    phase_difference,
    point,
    still_racing,
)

STEADY = "each arm's outcomes do not change over time"
FIXED = "outcomes were fixed in advance (they may change over time)"
AS_IN_THE_LOG = "each arm's outcomes are like those in the log and do not change over time"
AT_RANDOM = "rows are independent and chance decided who got which arm"


class Method(Protocol):
    """How totals become statements."""

    def mean(self, arm: Totals, alpha: float) -> Interval:
        """Return the interval of an arm's mean loss."""

    def difference(self, a: Totals, b: Totals, alpha: float) -> Interval:
        """Return the interval of b's mean loss minus a's."""

    def better(self, a: Totals, b: Totals, alpha: float, margin: float = 0.0) -> bool:
        """Whether a's mean loss is below b's plus a margin, with error probability alpha."""

    def racing(self, arms: Sequence[Totals], alpha: float, margin: float) -> list[bool]:
        """Return which arms no arm with a smaller mean is better than."""


def pairs_racing(
    arms: Sequence[Totals],
    better: Callable[[Totals, Totals, float, float], bool],
    alpha: float,
    margin: float,
) -> list[bool]:
    """Return which arms are in the race, pair by pair, from the smallest mean on."""
    left = [True] * len(arms)
    ranked = sorted(range(len(arms)), key=lambda arm: point(arms[arm]))
    for rank, arm in enumerate(ranked):
        for rival in ranked[rank + 1 :]:
            if left[arm] and left[rival] and better(arms[arm], arms[rival], alpha, margin):
                left[rival] = False
    return left


class PhaseArm(Totals):
    """The totals of an arm that was played in phases, and which arm it is."""

    column: int


def arm_in_phases(totals: Totals, column: int) -> PhaseArm:
    """Return totals that know their arm."""
    arm = PhaseArm(*totals)
    arm.column = column
    return arm


class InPhases(NamedTuple):
    """Statements from phases, for any losses that were fixed in advance.

    Means are averages over phases, weighed by the arm's own rounds; differences are averages over
    the phases in which both arms were played, weighed by how precisely each phase tells them.
    """

    law: Law
    counts: NDArray[np.float64]
    sums: NDArray[np.float64]

    def mean(self, arm: Totals, alpha: float) -> Interval:
        """Return the interval of an arm's mean loss."""
        return mean_interval(self.law, arm, alpha)

    def difference(self, a: Totals, b: Totals, alpha: float) -> Interval:
        """Return the interval of b's mean loss minus a's."""
        assert isinstance(a, PhaseArm)
        assert isinstance(b, PhaseArm)
        columns = self.counts, self.sums, a.column, b.column
        found = phase_difference(*columns, scale=self.law.scale, alpha=alpha)
        return Interval(-1.0, 1.0) if found is None else Interval(found.low, found.high)

    def better(self, a: Totals, b: Totals, alpha: float, margin: float = 0.0) -> bool:
        """Whether a's mean loss is below b's plus a margin, with error probability alpha."""
        return self.difference(a, b, 2.0 * alpha).low > -margin

    def racing(self, arms: Sequence[Totals], alpha: float, margin: float) -> list[bool]:
        """Return which arms no arm with a smaller mean is better than."""
        return pairs_racing(arms, self.better, alpha, margin)


class AnyTime(NamedTuple):
    """Confidence sequences: intervals that are valid at any time."""

    law: Law

    def mean(self, arm: Totals, alpha: float) -> Interval:
        """Return the interval of an arm's mean loss."""
        return mean_interval(self.law, arm, alpha)

    def difference(self, a: Totals, b: Totals, alpha: float) -> Interval:
        """Return the interval of b's mean loss minus a's."""
        return difference_interval(self.law, a, b, alpha)

    def better(self, a: Totals, b: Totals, alpha: float, margin: float = 0.0) -> bool:
        """Whether a's mean loss is below b's plus a margin, with error probability alpha."""
        return is_below(self.law, a, b, alpha, margin)

    def racing(self, arms: Sequence[Totals], alpha: float, margin: float) -> list[bool]:
        """Return which arms no arm with a smaller mean is better than, in one compiled call."""
        return still_racing(self.law, arms, alpha, margin)


class InPart(NamedTuple):
    """A method with a part of the error probability, where two of them share it."""

    method: Method
    part: float

    def mean(self, arm: Totals, alpha: float) -> Interval:
        """Return the interval of an arm's mean loss."""
        return self.method.mean(arm, self.part * alpha)

    def difference(self, a: Totals, b: Totals, alpha: float) -> Interval:
        """Return the interval of b's mean loss minus a's."""
        return self.method.difference(a, b, self.part * alpha)

    def better(self, a: Totals, b: Totals, alpha: float, margin: float = 0.0) -> bool:
        """Whether a's mean loss is below b's plus a margin, with error probability alpha."""
        return self.method.better(a, b, self.part * alpha, margin)

    def racing(self, arms: Sequence[Totals], alpha: float, margin: float) -> list[bool]:
        """Return which arms no arm with a smaller mean is better than."""
        return self.method.racing(arms, self.part * alpha, margin)


class Once(NamedTuple):
    """Intervals for totals that are looked at once, of sums with noise of a scale."""

    scale: float

    def mean(self, arm: Totals, alpha: float) -> Interval:
        """Return the interval of an arm's mean loss."""
        return fixed_mean_interval(self.scale, arm, alpha)

    def difference(self, a: Totals, b: Totals, alpha: float) -> Interval:
        """Return the interval of b's mean loss minus a's."""
        return fixed_difference_interval(self.scale, a, b, alpha)

    def better(self, a: Totals, b: Totals, alpha: float, margin: float = 0.0) -> bool:
        """Whether a's mean loss is below b's plus a margin, with error probability alpha."""
        return fixed_below(self.scale, a, b, alpha, margin)

    def racing(self, arms: Sequence[Totals], alpha: float, margin: float) -> list[bool]:
        """Return which arms no arm with a smaller mean is better than."""
        return pairs_racing(arms, self.better, alpha, margin)


class Known(NamedTuple):
    """What was released, as answers are made from it."""

    names: tuple[ArmName, ...]
    totals: dict[int, Totals]
    rounds: dict[int, float]
    method: Method | None

    def in_part(self, part: float) -> Known:
        """Return the same for statements that have a part of the error probability."""
        return self if self.method is None else self._replace(method=InPart(self.method, part))
