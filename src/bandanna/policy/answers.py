"""Which arm is best, by how much and how sure: answers from released values, in the user's units.

These are functions on plain values: names, totals, the law of the releases, the range of losses.
They cost no privacy, because everything was released before. ``bandanna.inference`` has the
statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.html import paragraph, table
from bandanna._core.types import JSON, ArmName, InputError
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
)

STEADY = "each arm's outcomes do not change over time"
FIXED = "outcomes were fixed in advance; they may change over time"
AT_RANDOM = "rows are independent and chance decided who got which arm"
ANY_TIME = "It holds at whatever time you look."


class Method(Protocol):
    """How totals become statements."""

    def mean(self, arm: Totals, alpha: float) -> Interval:
        """Return the interval of an arm's mean loss."""

    def difference(self, a: Totals, b: Totals, alpha: float) -> Interval:
        """Return the interval of b's mean loss minus a's."""

    def better(self, a: Totals, b: Totals, alpha: float, margin: float = 0.0) -> bool:
        """Whether a's mean loss is below b's plus a margin, with error probability alpha."""


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


class AnyTime(NamedTuple):
    """Confidence sequences: they hold at whatever time one looks."""

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


class Known(NamedTuple):
    """What was released, as answers are made from it."""

    names: tuple[ArmName, ...]
    totals: dict[int, Totals]
    rounds: dict[int, float]
    method: Method | None


@dataclass(frozen=True)
class Units:
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
        """What a mean is a mean of."""
        return self.outcome or ("reward" if self.reward else "loss")

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
        digits = _digits(max(size, *ends) - min(size, *ends))
        if low > 0.0:  # a positive end is not shown as 0
            digits = max(digits, _digits(10.0 * ends[0]))
        shown = [f"{value:,.{digits}f}" for value in ends]
        within = f"at least {shown[0]}" if high is None else f"{shown[0]} to {shown[1]}"
        return f"{size:,.{digits}f}{per} ({within})"

    def amount(self, size: float) -> str:
        """Write a difference by itself."""
        times, per = self._scaled(abs(size))
        return f"{self.width * times * size:,.3g}{per}"

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


class Settled(NamedTuple):
    """What a race for the best arm has settled so far, by index."""

    racing: tuple[int, ...]
    winner: int | None
    tolerance: float
    """By how much another arm may be better than the winner, as a share of the range."""


class DroppedArm(NamedTuple):
    """An arm that left the race, and the evidence for that."""

    name: ArmName
    by: ArmName | None
    """The arm that is better."""
    rounds: int
    """After how many rounds of all arms."""
    log_evidence: float
    """Chance alone reaches it with probability at most ``exp(-log_evidence)``."""
    reason: str = ""
    """Where a guardrail retired it: what was found of which metric."""


class _Shown:
    """What answers have in common: a sentence, JSON, a table for notebooks."""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        raise NotImplementedError


@dataclass(frozen=True)
class ArmAnswer:
    """What is known of one arm, in the user's units."""

    name: ArmName
    rounds: int
    """Rounds (or slots of people) behind its releases."""
    mean: float | None
    """The estimated mean, moved into the interval where noise took it out; None if unknown."""
    low: float
    high: float
    """The interval, for sampling and noise together."""
    racing: bool = True
    """Whether it may still be the best."""

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return {
            "name": self.name,
            "rounds": self.rounds,
            "mean": self.mean,
            "low": self.low,
            "high": self.high,
            "racing": self.racing,
        }


@dataclass(frozen=True)
class Answer(_Shown):
    """Which arm is best, if that can be said, and what is known of each.

    Attributes
    ----------
    best
        The name of the best arm; None while it cannot be told at this confidence.
    arms
        What is known of each arm, in the policy's order.
    sentence
        The answer in one sentence, with its assumption.
    confidence
        The best arm is named wrongly with probability at most one minus this, and each interval
        misses with at most this probability by itself, at all times together.
    assumption
        What must be true for it to hold.
    """

    best: ArmName | None
    arms: tuple[ArmAnswer, ...]
    sentence: str
    confidence: float
    assumption: str
    units: Units = field(default_factory=Units, repr=False)
    warning: str = ""
    """What speaks against the assumption, if anything does."""
    looks: str = ANY_TIME
    """When it may be looked at."""

    @classmethod
    def later(
        cls, best: Callable[[], ArmName | None], whole: Callable[[], Answer], warning: str
    ) -> Answer:
        """Return an answer that is computed when it is looked at; ``best`` by itself."""
        made = object.__new__(Answer)
        made.__dict__.update(warning=warning, _best=best, _whole=whole)
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            known = self.__dict__
            if name.startswith("_") or "_whole" not in known:
                raise AttributeError(f"an answer has no {name!r}")
            if name == "best":
                known["best"] = known["_best"]()
                return known["best"]
            known.update(known["_whole"]().__dict__)
            if name not in known:
                raise AttributeError(f"an answer has no {name!r}")
            return known[name]

        def __getstate__(self) -> dict[str, object]:
            """Compute what has not been looked at before it is copied or pickled."""
            _ = self.sentence
            return {key: value for key, value in self.__dict__.items() if key[0] != "_"}

    @property
    def racing(self) -> tuple[ArmName, ...]:
        """The arms that may still be the best."""
        return tuple(arm.name for arm in self.arms if arm.racing)

    def to_dict(self) -> JSON:
        """Return it as plain values, for JSON."""
        return {
            "best": self.best,
            "sentence": self.sentence,
            "confidence": self.confidence,
            "assumption": self.assumption,
            "outcome": self.units.noun,
            "arms": [arm.to_dict() for arm in self.arms],
            "racing": list(self.racing),
            "warning": self.warning,
        }

    def _lines(self) -> list[str]:
        lines = [self.sentence]
        width = max(len(str(arm.name)) for arm in self.arms)
        for arm in self.arms:
            seen = f"{arm.rounds:,} {self.units.per}, {self._of(arm)}"
            lines.append(f"  {arm.name!s:{width}}  {seen}")
        each = f"Each interval holds by itself, {100 * self.confidence:.4g}% sure. {self.looks}"
        return [*lines, *filter(None, (self.warning, each))]

    def _of(self, arm: ArmAnswer) -> str:
        if arm.mean is None:
            return "nothing released yet"
        digits = max(_digits(arm.high - arm.low), 0)
        mean, low, high = (f"{value:,.{digits}f}" for value in (arm.mean, arm.low, arm.high))
        return f"mean {self.units.noun} {mean} ({low} to {high})"

    def _repr_html_(self) -> str:
        rows = [
            [str(arm.name), f"{arm.rounds:,}", *self.cells(arm), "yes" if arm.racing else "no"]
            for arm in self.arms
        ]
        interval = f"{100 * self.confidence:.4g}% interval"
        headings = ["arm", self.units.per, f"mean {self.units.noun}", interval, "may be best"]
        said = paragraph(f"{self.warning} {self.looks}")
        return paragraph(self.sentence) + table("", headings, rows) + said

    def cells(self, arm: ArmAnswer) -> tuple[str, str]:
        """Return an arm's mean and interval as they are shown in tables."""
        if arm.mean is None:
            return "-", "-"
        digits = _digits(arm.high - arm.low)
        return f"{arm.mean:,.{digits}f}", f"{arm.low:,.{digits}f} to {arm.high:,.{digits}f}"


@dataclass(frozen=True)
class Comparison(_Shown):
    """How two arms differ: the second one's mean minus the first one's, in the user's units."""

    first: ArmName
    second: ArmName
    difference: float | None
    low: float
    high: float
    sentence: str
    confidence: float
    assumption: str

    def to_dict(self) -> JSON:
        """Return it as plain values, for JSON."""
        return {
            "first": self.first,
            "second": self.second,
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "sentence": self.sentence,
            "confidence": self.confidence,
            "assumption": self.assumption,
        }

    def _lines(self) -> list[str]:
        return [self.sentence, ANY_TIME]

    def _repr_html_(self) -> str:
        return paragraph(str(self))


def answer_from(
    names: Sequence[ArmName],
    totals: Mapping[int, Totals],
    rounds: Mapping[int, float],
    method: Method | None,
    units: Units,
    *,
    confidence: float = 0.95,
    among: Sequence[int] | None = None,
    assumption: str = STEADY,
    warning: str = "",
    settled: Settled | None = None,
) -> Answer:
    """Answer which arm is best.

    Parameters
    ----------
    names
        Names of the arms, or experts.
    totals
        What was released about each, by index; those without a release are left out.
    rounds
        How many rounds each arm's releases hold.
    method
        How totals become statements; None where they say nothing about means.
    units
        How the user counts.
    confidence
        Of the name of the best arm, and of each interval.
    among
        Indices of the arms that can be best; all by default.
    assumption, warning
        What must be true, and what speaks against it.
    settled
        What a race with at least this confidence has settled already: it stays settled.
    """
    alpha = 1.0 - check_confidence(confidence)
    running = range(len(names)) if among is None else among
    racing = _still_racing(totals, method, running, alpha, settled)
    arms = []
    for index, name in enumerate(names):
        seen, may_win = round(rounds.get(index, 0)), index in racing
        if method is None or index not in totals:
            arms.append(ArmAnswer(name, seen, None, units.low, units.high, may_win))
            continue
        found = method.mean(totals[index], alpha)
        mean = min(max(point(totals[index]), found.low), found.high)
        arms.append(ArmAnswer(name, seen, units.value(mean), *units.interval(found), may_win))
    best = _winner(racing, running, settled)
    if best is not None and len(racing) > 1 and settled is not None:
        words = (
            f"{names[best]} is good enough: no other arm is better by more than "
            f"{units.amount(settled.tolerance)}"
        )
    else:
        words = _best_words(best, racing, running, names, totals, method, units, alpha)
    sentence = f"{words}, {_sure(confidence)}, provided {assumption}."
    named = None if best is None or units.neutral else names[best]
    return Answer(named, tuple(arms), sentence, confidence, assumption, units, warning)


def answer_later(
    known: Callable[[], Known],
    units: Units,
    *,
    confidence: float = 0.95,
    among: Sequence[int],
    assumption: str = STEADY,
    warning: str = "",
    settled: Settled | None = None,
) -> Answer:
    """Return what ``answer_from`` does, computed when it is looked at: ``best`` takes little.

    ``known`` must return the same whenever it is called.
    """
    alpha = 1.0 - check_confidence(confidence)

    def best() -> ArmName | None:
        names, totals, _, method = known()
        racing = _still_racing(totals, method, among, alpha, settled)
        found = _winner(racing, among, settled)
        return None if found is None or units.neutral else names[found]

    def whole() -> Answer:
        return answer_from(
            *known(),
            units,
            confidence=confidence,
            among=among,
            assumption=assumption,
            warning=warning,
            settled=settled,
        )

    return Answer.later(best, whole, warning)


def _still_racing(
    totals: Mapping[int, Totals],
    method: Method | None,
    running: Sequence[int],
    alpha: float,
    settled: Settled | None,
) -> list[int]:
    """Return the arms that may be the best; what a race has settled stays settled."""
    racing = in_the_race(totals, method, running, alpha)
    if settled is None:
        return racing
    return [arm for arm in racing if arm in settled.racing] or list(settled.racing)


def _winner(racing: Sequence[int], running: Sequence[int], settled: Settled | None) -> int | None:
    """Return the best arm, if it can be named."""
    if len(racing) == 1 and len(running) > 1:
        return racing[0]
    return None if settled is None else settled.winner


def compare_from(
    names: Sequence[ArmName],
    totals: Mapping[int, Totals],
    method: Method | None,
    units: Units,
    first: ArmName,
    second: ArmName,
    *,
    confidence: float = 0.95,
    assumption: str = STEADY,
) -> Comparison:
    """Compare two arms, by name."""
    alpha = 1.0 - check_confidence(confidence)
    a, b = index_of(names, first), index_of(names, second)
    if a == b:
        raise InputError(f"compare two different arms; got {first!r} twice.")
    if method is None or a not in totals or b not in totals:
        missing = [str(names[arm]) for arm in (a, b) if arm not in totals or method is None]
        sentence = f"Nothing has been released of {' and '.join(missing)} yet."
        ends = -units.width, units.width
        return Comparison(names[a], names[b], None, *ends, sentence, confidence, assumption)
    found = method.difference(totals[a], totals[b], alpha)
    more = point(totals[b]) - point(totals[a])
    more = min(max(more, found.low), found.high)  # of losses, as a share of the range
    sign = -1.0 if units.reward else 1.0
    low, high = sorted(sign * units.width * end for end in found)
    words = _difference_words(names[a], names[b], more, found, units)
    sentence = f"{words}, {_sure(confidence)}, provided {assumption}."
    size = sign * units.width * more
    return Comparison(names[a], names[b], size, low, high, sentence, confidence, assumption)


def in_the_race(
    totals: Mapping[int, Totals],
    method: Method | None,
    among: Sequence[int],
    alpha: float,
    tolerance: float = 0.0,
) -> list[int]:
    """Return the arms that may still be the best: no other is better beyond doubt.

    With a ``tolerance``, arms that cannot be better than another by more than it leave as well.
    """
    if method is None:
        return list(among)
    share = alpha / max(len(among), 1)
    known = sorted((arm for arm in among if arm in totals), key=lambda arm: point(totals[arm]))
    left = set(among)
    for place, arm in enumerate(known):
        for rival in known[place + 1 :]:
            if rival not in left or arm not in left:
                continue
            if method.better(totals[arm], totals[rival], share, tolerance):
                left.discard(rival)
    return [arm for arm in among if arm in left]


def leader_from(
    names: Sequence[ArmName],
    totals: Mapping[int, Totals],
    method: Method | None,
    among: Sequence[int],
) -> ArmName | None:
    """Return the arm with the smallest released mean loss; None while nothing is known."""
    known = [arm for arm in among if arm in totals]
    if method is None or not known:
        return None
    return names[min(known, key=lambda arm: point(totals[arm]))]


def index_of(names: Sequence[ArmName], name: ArmName) -> int:
    """Return the index of an arm by name."""
    if name not in names:
        known = ", ".join(map(repr, names))
        raise InputError(f"there is no arm {name!r}; there are {known}.")
    return list(names).index(name)


def check_confidence(confidence: object) -> float:
    """Require a confidence from 0.5 to below 1."""
    found = checks.as_float(confidence)
    if not 0.5 <= found < 1.0:
        raise InputError(
            f"confidence must be from 0.5 to below 1, such as 0.95; got {confidence!r}."
        )
    return found


def _best_words(
    best: int | None,
    racing: Sequence[int],
    running: Sequence[int],
    names: Sequence[ArmName],
    totals: Mapping[int, Totals],
    method: Method | None,
    units: Units,
    alpha: float,
) -> str:
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


def _difference_words(
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


def _sure(confidence: float) -> str:
    return f"{100.0 * confidence:.4g}% sure"


def _digits(width: float) -> int:
    """Return how many decimals show an interval of a width to about two digits."""
    return max(0, min(8, 1 - math.floor(math.log10(width)))) if width > 0.0 else 4
