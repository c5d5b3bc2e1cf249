"""How totals of released values become statements about means, what each assumes, and its words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bandanna._core.types import ArmName, plain
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


WEIGHED = (
    "EXP4 weighs all experts in every round, and from what it releases no expert's mean is bounded "
    "here, so no best expert is named. For an answer about experts use a conversion, such as "
    "adaptive-conversion, which follows one expert at a time."
)
"""What is said where experts are weighed."""


class Units(NamedTuple):
    """How a user counts: the range of outcomes, and whether more is better."""

    low: float = 0.0
    high: float = 1.0
    reward: bool = False
    outcome: str = ""
    """What is counted, such as visits."""
    per: str = "decisions"
    """What it is counted per."""
    neutral: bool = False
    """Whether neither more nor less of it is better: then no best arm is named."""
    clip: bool = False
    """Whether what is outside of the range counts as its nearer end."""

    @property
    def width(self) -> float:
        """The length of the range."""
        return self.high - self.low

    @property
    def better(self) -> str:
        """What the sentence says between the better arm and the other."""
        return f"has more {self.noun} than" if self.neutral else "is better than"

    @property
    def noun(self) -> str:
        """What a mean is a mean of, such as ``visits, counted up to 20``."""
        return f"{self.name}, {self.counted}" if self.clip else self.name

    @property
    def name(self) -> str:
        """What is counted."""
        return self.outcome or ("reward" if self.reward else "loss")

    @property
    def counted(self) -> str:
        """How much of it is counted where it is clipped."""
        if self.low == 0.0:
            return f"counted up to {plain(self.high)}"
        return f"counted from {plain(self.low)} to {plain(self.high)}"

    @property
    def aside(self) -> str:
        """What a sentence adds after a number where outcomes are clipped."""
        return f", {self.noun}" if self.clip else ""

    def value(self, loss: float) -> float:
        """Return a mean loss in [0, 1] as the user counts it."""
        return self.high - self.width * loss if self.reward else self.low + self.width * loss

    def interval(self, losses: Interval) -> tuple[float, float]:
        """Return an interval of mean losses as the user counts it."""
        low, high = sorted((self.value(losses.low), self.value(losses.high)))
        return low, high

    def gain(self, size: float, low: float, high: float | None = None) -> str:
        """Write how much better an arm is, with its interval: positive is better.

        Without an upper end, with the least that it can be.
        """
        ends = [low] if high is None else [low, high]
        times, per = self._scaled(max(abs(value) for value in (size, *ends)))
        size, *ends = (self.width * times * value for value in (size, *ends))
        digits = digits_for(max(size, *ends) - min(size, *ends))
        if low > 0.0:  # a positive end is not shown as 0
            digits = max(digits, digits_for(10.0 * ends[0]))
        shown = [f"{value:,.{digits}f}" for value in ends]
        within = f"at least {shown[0]}" if high is None else f"{shown[0]} to {shown[1]}"
        return f"{size:,.{digits}f}{per} ({within}){self.aside}"

    def amount(self, size: float) -> str:
        """Write a difference by itself."""
        times, per = self._scaled(abs(size))
        return f"{self.width * times * size:,.3g}{per}{self.aside}"

    def _scaled(self, largest: float) -> tuple[float, str]:
        """Return a factor that makes a difference readable, and what it is per."""
        times, per = 1.0, self.per_one
        for often in (100, 10_000, 1_000_000):
            if self.width * largest * times >= 1.0:
                break
            times, per = float(often), f"{often:,} {self.per}"
        return times, f"{f' {self.outcome}' if self.outcome else ''} per {per}"

    @property
    def per_one(self) -> str:
        """What it is counted per, one of them."""
        return {"people": "person"}.get(self.per, self.per.removesuffix("s"))


def best_words(
    best: int | None,
    racing: Sequence[int],
    running: Sequence[int],
    names: Sequence[ArmName],
    totals: Mapping[int, Totals],
    method: Method | None,
    units: Units,
    alpha: float,
) -> str:
    """Say which arm is best and by how much, or which may still be."""
    if best is None or method is None:
        return _open_words(racing, running, names, totals, method, units)
    others = [arm for arm in running if arm != best]
    level = 2.0 * alpha / len(running)
    found = {arm: method.difference(totals[best], totals[arm], level) for arm in others}
    nearest = min(others, key=lambda arm: found[arm].low)
    low, high = max(found[nearest].low, 0.0), found[nearest].high  # the same test named the best
    more = point(totals[nearest]) - point(totals[best])
    more = min(max(more, low), high)
    if len(others) == 1:
        than = f"{names[best]} {units.better} {names[nearest]}"
        return f"{than} by {units.gain(more, low, high)}"
    # Which arm is nearest is seen in the values: all lower ends hold together, and no upper one.
    leads = f"has the most {units.noun}" if units.neutral else "is the best"
    than = "more than" if units.neutral else "better than"
    return (
        f"{names[best]} {leads} of {len(running)} arms, {than} {names[nearest]}, the "
        f"nearest, by {units.gain(more, low)}"
    )


def _open_words(
    racing: Sequence[int],
    running: Sequence[int],
    names: Sequence[ArmName],
    totals: Mapping[int, Totals],
    method: Method | None,
    units: Units,
) -> str:
    if units.neutral and method is not None and any(arm in totals for arm in running):
        return f"It is too early to say which arm has the most {units.noun}"
    if method is None:
        return "What was released says nothing about means, so no best arm can be named"
    if len(running) == 1:
        return f"{names[running[0]]} is the only arm"
    if not any(arm in totals for arm in running):
        return "Nothing has been released yet, so no best arm can be named"
    some = _listed([names[arm] for arm in racing])
    if len(racing) == len(running):
        return f"It is too early to name the best arm: {some} may be the best"
    return f"The best arm is one of {some}; the others are worse"


def difference_words(
    first: ArmName, second: ArmName, more: float, found: Interval, units: Units
) -> str:
    """Say which of two arms is better, given how much larger the second one's mean loss is."""
    if found.low > 0.0:
        gain = units.gain(more, found.low, found.high)
        return f"{first} {units.better} {second} by {gain}"
    if found.high < 0.0:
        gain = units.gain(-more, -found.high, -found.low)
        return f"{second} {units.better} {first} by {gain}"
    if more < 0.0:  # name the one that looks better first: its estimate is then positive
        first, second, more = second, first, -more
        found = Interval(-found.high, -found.low)
    gain = units.gain(more, found.low, found.high)
    looks, may = ("has more", "have less") if units.neutral else ("looks better", "be worse")
    return (
        f"{first} and {second} are too close to tell apart: {first} {looks} by {gain}, but may "
        f"{may}"
    )


def _listed(names: Sequence[ArmName]) -> str:
    shown = [str(name) for name in names[:6]]
    if len(names) > 6:
        return f"{', '.join(shown)} and {len(names) - 6} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]


def sure(confidence: float) -> str:
    """Say how sure an answer is."""
    return f"{100.0 * confidence:.4g}% sure"


def digits_for(width: float) -> int:
    """Return how many decimals show an interval of a width to about two digits."""
    return max(0, min(8, 1 - math.floor(math.log10(width)))) if width > 0.0 else 4
