"""How statements are worded: what they assume, how a user counts, which arm is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bandanna._core.types import ArmName, plain
from bandanna.error_budget import ErrorBudget
from bandanna.inference import Interval
from bandanna.policy.intervals import Intervals, Known, Standing
from bandanna.scorecard.text import digits_of

STEADY = "each arm's outcomes do not change over time"
FIXED = "outcomes were fixed in advance (they may change over time)"
AMONG_SOME = (
    "outcomes were fixed in advance (they may change over time) and, within a phase, had nothing "
    "to do with which arms were eligible"
)
AS_IN_THE_LOG = "each arm's outcomes are like those in the log and do not change over time"
AT_RANDOM = "rows are independent and chance decided who got which arm"
THAT_CAME = "whether feedback came had nothing to do with outcomes (what was given up is left out)"

WEIGHED = (
    "EXP4 weighs all experts in every round, and from what it releases no expert's mean is bounded "
    "here, so no best expert is named. For an answer about experts use a conversion, such as "
    "adaptive, which follows one expert at a time."
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
    adjusted: str = ""
    """What was known before and is subtracted, if anything is."""
    slope: float = 0.0
    """How many times it is subtracted."""
    found: str = ""
    """How the range was found, if it was."""

    @property
    def width(self) -> float:
        """The length of the range."""
        return self.high - self.low

    @property
    def better(self) -> str:
        """What the sentence says between the better arm and the other."""
        return f"has more {self.name} than" if self.neutral else "is better than"

    @property
    def noun(self) -> str:
        """What a mean is a mean of, such as ``visits, counted up to 20``."""
        return f"{self.name}, {self.counted}" if self.clip else self.name

    @property
    def name(self) -> str:
        """What is counted."""
        name = self.outcome or ("reward" if self.reward else "loss")
        return f"{name} adjusted by {self.adjusted}" if self.adjusted else name

    @property
    def subtracted(self) -> str:
        """What means and differences are of, where something is subtracted or was found."""
        if not self.adjusted:
            return self.found
        what = self.outcome or ("the reward" if self.reward else "the loss")
        return (
            f"{plain(round(self.slope, 4))} times {self.adjusted} is subtracted from {what}: means "
            f"are of what is left, and differences between arms stay what they are but for what is "
            f"cut. {self.found}".rstrip()
        )

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

    @property
    def by(self) -> str:
        """What arms are ranked by, where no number says it and outcomes are clipped."""
        return f" by {self.noun}" if self.clip else ""

    def value(self, loss: float) -> float:
        """Return a mean loss in [0, 1] as the user counts it."""
        return self.high - self.width * loss if self.reward else self.low + self.width * loss

    def interval(self, losses: Interval) -> tuple[float, float]:
        """Return an interval of mean losses as the user counts it."""
        low, high = sorted((self.value(losses.low), self.value(losses.high)))
        return low, high

    def difference(self, more: float, losses: Interval) -> tuple[float, float, float]:
        """Return a difference of mean losses, and its interval, as the user counts it."""
        unit = -self.width if self.reward else self.width
        low, high = sorted(unit * end for end in losses)
        return unit * more, low, high

    def gain(self, size: float, low: float, high: float | None = None) -> str:
        """Write how much better an arm is, with its interval: positive is better.

        Without an upper end, with the least that it can be.
        """
        ends = [low] if high is None else [low, high]
        times, per = self._scaled(max(abs(value) for value in (size, *ends)))
        size, *ends = (self.width * times * value + 0.0 for value in (size, *ends))  # no -0
        digits = digits_of(max(max(size, *ends) - min(size, *ends), 1e-3 * abs(size)), 4)
        if low > 0.0:  # a positive end is not shown as 0
            digits = max(digits, digits_of(10.0 * ends[0]))
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
        return times, f"{f' {self.name}' if self.outcome else ''} per {per}"

    @property
    def per_one(self) -> str:
        """What it is counted per, one of them."""
        return {"people": "person"}.get(self.per, self.per.removesuffix("s"))


def best_words(
    found: Standing, running: Sequence[int], known: Known, units: Units, budget: ErrorBudget
) -> str:
    """Say which arm is best and by how much, or which may still be."""
    names, intervals, best = known.names, known.intervals, found.best
    if best is None or intervals is None:
        return _open_words(found.racing, running, known, units)
    others = [arm for arm in running if arm != best and arm in intervals.known]
    lead = {arm: of_pair(intervals, budget, best, arm, best) for arm in others}
    nearest = min(others, key=lambda arm: lead[arm].low)
    low, high = lead[nearest]
    more = min(max(intervals.apart(best, nearest) or 0.0, low), high)
    over = f", {intervals.of_differences}" if intervals.of_differences else ""
    if len(running) == 2:
        than = f"{names[best]} {units.better} {names[nearest]}"
        return f"{than} by {units.gain(more, low, high)}{over}"
    leads = f"has the most {units.name}" if units.neutral else "is the best"
    than = "more than" if units.neutral else "better than"
    return (
        f"{names[best]} {leads} of {len(running)} arms, {than} {names[nearest]}, the "
        f"nearest, by {units.gain(more, low)}{over}"
    )


def of_pair(
    intervals: Intervals, budget: ErrorBudget, a: int, b: int, best: int | None
) -> Interval:
    """Return the interval of b's mean loss minus a's; what is known of the best arm counts."""
    low, high = intervals.difference(a, b, budget.pair(a, b))
    if best == a:
        return Interval(max(low, 0.0), max(high, 0.0))
    return Interval(min(low, 0.0), min(high, 0.0)) if best == b else Interval(low, high)


def _open_words(racing: Sequence[int], running: Sequence[int], known: Known, units: Units) -> str:
    names, intervals = known.names, known.intervals
    if units.neutral and any(arm in known.told for arm in running):
        return f"It is too early to say which arm has the most {units.noun}"
    if len(running) == 1 and intervals is not None:
        return f"{names[running[0]]} is the only arm"
    if not any(arm in known.told for arm in running):
        why = "What was released says nothing about means"
        why = why if intervals is None else "Nothing has been released yet"
        return f"{why}, so no best arm can be named"
    some = _listed([names[arm] for arm in racing])
    if len(racing) in (1, len(running)):
        only = "only " if len(racing) == 1 else ""
        return f"It is too early to name the best arm: {only}{some} may be the best{units.by}"
    return f"The best arm is one of {some}{units.by}; the others are worse"


def difference_words(
    first: ArmName,
    second: ArmName,
    more: float,
    interval: Interval,
    units: Units,
    *,
    leads: int = 0,
) -> str:
    """Say which of two arms is better, given how much larger the second one's mean loss is.

    ``leads`` is 1 if the first is known to be the best arm, -1 if the second is.
    """
    if interval.low > 0.0 or leads > 0:
        gain = units.gain(more, interval.low, interval.high)
        return f"{first} {units.better} {second} by {gain}"
    if interval.high < 0.0 or leads < 0:
        gain = units.gain(-more, -interval.high, -interval.low)
        return f"{second} {units.better} {first} by {gain}"
    if more < 0.0:  # name the one that looks better first: its estimate is then positive
        first, second, more = second, first, -more
        interval = Interval(-interval.high, -interval.low)
    gain = units.gain(more, interval.low, interval.high)
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


NORMAL = " by the normal approximation"


def sure(confidence: float, intervals: Intervals | None = None) -> str:
    """Say how sure an answer is, and how if that is not proved."""
    how = NORMAL if intervals is not None and intervals.approximate else ""
    return f"{100.0 * confidence:.4g}% sure{how}"
