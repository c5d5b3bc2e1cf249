"""Which arm is best, by how much and how sure: answers from released values, in the user's units.

These are functions on plain values: names, totals, the law of the releases, the range of losses.
They cost no privacy, because everything was released before. ``bandanna.inference`` has the
statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from bandanna._core import checks
from bandanna._core.html import paragraph, table
from bandanna._core.tabular import Cell, Tabular
from bandanna._core.types import JSON, ArmName, InputError
from bandanna.error_budget import ErrorBudget
from bandanna.policy.intervals import Intervals, Known, Standing, standing
from bandanna.policy.statements import (
    Units,
    best_words,
    difference_words,
    of_pair,
    sure,
)
from bandanna.scorecard.text import digits_of

ANY_TIME = "It is valid at any time, however often you look."
ANY_TIME_NORMAL = (
    "It is valid at any time, however often you look, as far as sums of a hundred outcomes and "
    "more are normal."
)
COUNTS_THE_LOG = (
    "This counts the log that the policy started from; the run alone, in which outcomes may change "
    "over time, does not tell yet."
)


class Settled(NamedTuple):
    """What a race for the best arm has settled so far, by index."""

    racing: tuple[int, ...]
    winner: int | None
    """The arm that is played from then on: the best, or good enough while others race too."""
    tolerance: float
    """By how much another arm may be better than the winner, as a share of the range."""


class Shown(NamedTuple):
    """What was released, and how it may be said."""

    known: Known
    budget: ErrorBudget
    """With which probability each statement may be wrong; all of them with ``alpha``."""
    assumption: str
    """What must be true."""
    note: str = ""
    """What else is said."""


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


class Question(NamedTuple):
    """What is asked of what was released."""

    units: Units
    """How the user counts."""
    among: Sequence[int]
    """Indices of the arms that can be best."""
    settled: Settled | None = None
    """What a race with at least this confidence has settled already: it stays settled."""
    warning: str = ""
    """What speaks against the assumption."""
    unsaid: str = ""
    """Why nothing can be said, where that is so: the whole sentence."""


@dataclass(frozen=True)
class ArmAnswer:
    """What is known of one arm, in the user's units."""

    name: ArmName
    rounds: int
    """Rounds (or slots of people) behind its releases."""
    mean: float | None
    """The estimated mean, no further than outcomes go; None if unknown."""
    low: float
    high: float
    """The interval, for sampling and noise together."""
    racing: bool = True
    """Whether it may still be the best."""

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return dict(vars(self))


@dataclass(frozen=True)
class Answer(Tabular):
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
        How sure it is that all of this holds together, with every comparison of two arms, at all
        times.
    assumption
        What must be true for it to hold.
    good_enough
        With a tolerance, the arm that no other is better than by more, if that is known; it need
        not be the best one.
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
    good_enough: ArmName | None = field(default_factory=lambda: None)  # computed when looked at
    about: str = field(default_factory=str)
    """What means and differences are taken over, where that must be said."""

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
            "good_enough": self.good_enough,
            "sentence": self.sentence,
            "confidence": self.confidence,
            "assumption": self.assumption,
            "outcome": self.units.noun,
            "about": self.about,
            "arms": [arm.to_dict() for arm in self.arms],
            "racing": list(self.racing),
            "warning": self.warning,
        }

    def _records(self) -> list[dict[str, Cell]]:
        """Return a row for each arm."""
        return [arm.to_dict() | {"name": str(arm.name)} for arm in self.arms]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        lines = [self.sentence]
        width = max(len(str(arm.name)) for arm in self.arms)
        for arm in self.arms:
            seen = f"{arm.rounds:,} {self.units.per}, {self._of(arm)}"
            lines.append(f"  {arm.name!s:{width}}  {seen}")
        return [*lines, *filter(None, (self.warning, self.about, self.together))]

    @property
    def together(self) -> str:
        """How sure all of it is, and when it may be looked at."""
        return f"All of this holds together, {100 * self.confidence:.4g}% sure. {self.looks}"

    def _of(self, arm: ArmAnswer) -> str:
        if arm.mean is None:
            return "no release of its own"
        mean, ends = self.cells(arm)
        return f"mean {self.units.noun} {mean} ({ends})"

    def _repr_html_(self) -> str:
        rows = [
            [str(arm.name), f"{arm.rounds:,}", *self.cells(arm), "yes" if arm.racing else "no"]
            for arm in self.arms
        ]
        headings = ["arm", self.units.per, f"mean {self.units.noun}", "interval", "may be best"]
        said = paragraph(" ".join(filter(None, (self.warning, self.about, self.together))))
        return paragraph(self.sentence) + table("", headings, rows) + said

    def cells(self, arm: ArmAnswer) -> tuple[str, str]:
        """Return an arm's mean and interval as they are shown in tables."""
        if arm.mean is None:
            return "-", "-"
        digits = digits_of(arm.high - arm.low, 4)
        return f"{arm.mean:,.{digits}f}", f"{arm.low:,.{digits}f} to {arm.high:,.{digits}f}"


@dataclass(frozen=True)
class Comparison:
    """How two arms differ: the second one's mean minus the first one's, in the user's units."""

    first: ArmName
    second: ArmName
    difference: float | None
    low: float
    high: float
    sentence: str
    confidence: float
    assumption: str
    looks: str = ANY_TIME
    """When it may be looked at."""

    def to_dict(self) -> JSON:
        """Return it as plain values, for JSON."""
        return {name: value for name, value in vars(self).items() if name != "looks"}

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.looks}"

    def _repr_html_(self) -> str:
        return paragraph(str(self))


ABOUT = "An arm's mean is {means}; a difference is {differences}, more precise ones counting more."


def answer_from(shown: Shown, asked: Question) -> Answer:
    """Answer which arm is best, from what was released."""
    known, budget, assumption, note = shown
    names, _, intervals = known
    units, settled, standing_now = asked.units, asked.settled, _standing(shown, asked)
    arms = [
        replace(answer_arm(shown, units, index), racing=index in standing_now.racing)
        for index in range(len(names))
    ]
    enough, confidence = None, 1.0 - budget.alpha
    words = best_words(standing_now, asked.among, known, units, budget)
    if standing_now.best is None and settled is not None and settled.winner is not None:
        enough = names[settled.winner]
        words = (
            f"{enough} is good enough: no other arm is better by more than "
            f"{units.amount(settled.tolerance)}"
        )
    sentence = f"{words}, {sure(confidence, intervals)}, provided {assumption}."
    about = units.subtracted
    if intervals is not None and intervals.of_means and intervals.known:
        over = ABOUT.format(means=intervals.of_means, differences=intervals.of_differences)
        about = f"{over} {about}".rstrip()
    return Answer(
        _named(shown, asked, standing_now),
        tuple(arms),
        asked.unsaid or f"{sentence} {note}".rstrip(),
        confidence,
        assumption,
        units,
        asked.warning,
        _looks(intervals),
        good_enough=enough,
        about=about,
    )


def answer_arm(shown: Shown, units: Units, index: int) -> ArmAnswer:
    """Return what is known of one arm, by index."""
    (names, rounds, intervals), budget, *_ = shown
    name, seen = names[index], round(rounds.get(index, 0))
    if intervals is None or index not in intervals.known:
        return ArmAnswer(name, seen, None, units.low, units.high)
    ends = units.interval(intervals.mean(index, budget.mean(index)))
    return ArmAnswer(name, seen, units.value(intervals.estimate(index)), *ends)


def answer_later(shown: Callable[[], Shown], asked: Question) -> Answer:
    """Return what ``answer_from`` does, computed when it is looked at: ``best`` takes little.

    ``shown`` must return the same whenever it is called.
    """
    made = object.__new__(Answer)
    made.__dict__.update(
        _best=lambda: _named(shown(), asked, _standing(shown(), asked)),
        _whole=lambda: answer_from(shown(), asked),
        warning=asked.warning,
    )
    return made


def _named(shown: Shown, asked: Question, found: Standing) -> ArmName | None:
    """Return the name of the best arm, if one is to be named."""
    return None if found.best is None or asked.units.neutral else shown.known.names[found.best]


def _standing(shown: Shown, asked: Question) -> Standing:
    """Return which arms may be the best; what a race has settled stays settled."""
    (names, _, intervals), running, settled = shown.known, asked.among, asked.settled
    standing_now = standing(intervals, shown.budget, running, len(names))
    if settled is None:
        return standing_now
    racing = [arm for arm in standing_now.racing if arm in settled.racing] or list(settled.racing)
    return Standing(tuple(racing), racing[0] if len(racing) == 1 < len(running) else None)


def compare_from(shown: Shown, asked: Question, first: ArmName, second: ArmName) -> Comparison:
    """Compare two arms, by name."""
    (names, _, intervals), budget, assumption, note = shown
    units, running, confidence = asked.units, asked.among, 1.0 - budget.alpha
    a, b = index_of(names, first), index_of(names, second)
    if a == b:
        raise InputError(f"compare two different arms; got {first!r} twice.")
    missing = [str(names[arm]) for arm in (a, b) if arm not in shown.known.told]
    more = None if missing or intervals is None else intervals.apart(a, b)
    if intervals is None or more is None:
        never = f"{names[a]} and {names[b]} have never been played in the same phase."
        if missing:
            never = f"Nothing has been released of {' and '.join(missing)} yet."
        ends = -units.width, units.width
        return Comparison(
            names[a], names[b], None, *ends, asked.unsaid or never, confidence, assumption
        )
    best = _standing(shown, asked).best
    leads = int(best == a and b in running) - int(best == b and a in running)
    interval = of_pair(intervals, budget, a, b, best if leads else None)
    if leads:
        more = min(max(more, interval.low), interval.high)
    words = difference_words(names[a], names[b], more, interval, units, leads=leads)
    over = f", {intervals.of_differences}" if intervals.of_differences else ""
    said = sure(confidence, intervals)
    sentence = f"{words}{over}, {said}, provided {assumption}. {note}".rstrip()
    size, low, high = units.difference(more, interval)
    about = confidence, assumption, _looks(intervals)
    return Comparison(names[a], names[b], size, low, high, sentence, *about)


def _looks(intervals: Intervals | None) -> str:
    """Say when statements may be looked at, and how surely they hold then."""
    return ANY_TIME_NORMAL if intervals is not None and intervals.approximate else ANY_TIME


def index_of(names: Sequence[ArmName], name: ArmName) -> int:
    """Return the index of an arm by name."""
    if name not in names:
        choices = ", ".join(map(repr, names))
        raise InputError(f"there is no arm {name!r}; there are {choices}.")
    return list(names).index(name)


def check_confidence(confidence: object) -> float:
    """Require a confidence from 0.5 to below 1."""
    level = checks.as_float(confidence)
    if not 0.5 <= level < 1.0:
        raise InputError(
            f"confidence must be from 0.5 to below 1, such as 0.95; got {confidence!r}."
        )
    return level
