"""Which arm is best, by how much and how sure: answers from released values, in the user's units.

These are functions on plain values: names, totals, the law of the releases, the range of losses.
They cost no privacy, because everything was released before. ``bandanna.inference`` has the
statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from bandanna._core import checks
from bandanna._core.html import paragraph, table
from bandanna._core.types import JSON, ArmName, InputError
from bandanna.inference import Totals, point
from bandanna.policy.statements import (
    STEADY,
    Known,
    Method,
    Units,
    best_words,
    difference_words,
    digits_for,
    sure,
)

ANY_TIME = "It is valid at any time, however often you look."
COUNTS_THE_LOG = (
    "This counts the log that the policy started from; the run alone, in which outcomes may change "
    "over time, does not tell yet."
)


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


class _Statement:
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
class Answer(_Statement):
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
            return "no release of its own"
        digits = max(digits_for(arm.high - arm.low), 0)
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
        digits = digits_for(arm.high - arm.low)
        return f"{arm.mean:,.{digits}f}", f"{arm.low:,.{digits}f} to {arm.high:,.{digits}f}"


@dataclass(frozen=True)
class Comparison(_Statement):
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
    unsaid: str = "",
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
    unsaid
        Why nothing can be said, where that is so: the whole sentence.
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
        words = best_words(best, racing, running, names, totals, method, units, alpha)
    sentence = unsaid or f"{words}, {sure(confidence)}, provided {assumption}."
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
    unsaid: str = "",
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
            unsaid=unsaid,
        )

    return Answer.later(best, whole, warning)


def with_log(alone: Answer, together: Answer, warning: str) -> Answer:
    """Return the answer of a run in phases that started from a log.

    The run alone needs the weaker assumption, so its answer is given where it names an arm, and
    where it has seen outcomes change. Else the log counts, if outcomes are like those in it. Which
    of the two is given depends on what was released: they must share the error probability.
    """

    def best() -> ArmName | None:
        return alone.best if warning or alone.best is not None else together.best

    def whole() -> Answer:
        if warning or alone.best is not None:
            return replace(alone)  # computed
        return replace(together, sentence=f"{together.sentence} {COUNTS_THE_LOG}")

    return Answer.later(best, whole, warning)


def compared_with_log(alone: Comparison, together: Comparison, warning: str) -> Comparison:
    """Return the comparison in a run in phases that started from a log, as ``with_log``."""
    if warning or alone.low > 0.0 or alone.high < 0.0:
        return alone
    return replace(together, sentence=f"{together.sentence} {COUNTS_THE_LOG}")


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
    unsaid: str = "",
) -> Comparison:
    """Compare two arms, by name."""
    alpha = 1.0 - check_confidence(confidence)
    a, b = index_of(names, first), index_of(names, second)
    if a == b:
        raise InputError(f"compare two different arms; got {first!r} twice.")
    if method is None or a not in totals or b not in totals:
        missing = [str(names[arm]) for arm in (a, b) if arm not in totals or method is None]
        sentence = unsaid or f"Nothing has been released of {' and '.join(missing)} yet."
        ends = -units.width, units.width
        return Comparison(names[a], names[b], None, *ends, sentence, confidence, assumption)
    found = method.difference(totals[a], totals[b], alpha)
    more = point(totals[b]) - point(totals[a])
    more = min(max(more, found.low), found.high)  # of losses, as a share of the range
    sign = -1.0 if units.reward else 1.0
    low, high = sorted(sign * units.width * end for end in found)
    words = difference_words(names[a], names[b], more, found, units)
    sentence = f"{words}, {sure(confidence)}, provided {assumption}."
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
    known = [arm for arm in among if arm in totals]
    kept = method.racing([totals[arm] for arm in known], share, tolerance)
    gone = {arm for arm, stays in zip(known, kept, strict=True) if not stays}
    return [arm for arm in among if arm not in gone] if gone else list(among)


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
    if type(confidence) is float and 0.5 <= confidence < 1.0:
        return confidence
    found = checks.as_float(confidence)
    if not 0.5 <= found < 1.0:
        raise InputError(
            f"confidence must be from 0.5 to below 1, such as 0.95; got {confidence!r}."
        )
    return found
