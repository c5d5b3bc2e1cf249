"""The answer from a log, as it is shown, saved and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from bandanna._core.html import paragraph
from bandanna._core.start import Start
from bandanna._core.types import JSON, ArmName, Guarantee, InputError, plain
from bandanna.logs.effects import metric_of
from bandanna.logs.needed import Needed
from bandanna.logs.rules import Gain
from bandanna.one_look import HOW, Kind, OneLook
from bandanna.policy.answers import Answer, Comparison, check_confidence, index_of
from bandanna.policy.statements import AT_RANDOM, Units, difference_words, sure
from bandanna.privacy.statements import PRESENCE
from bandanna.scorecard.card import Scorecard
from bandanna.scorecard.health import sample_ratio
from bandanna.scorecard.recommend import recommend
from bandanna.scorecard.view import Check, Goal, Metric

if TYPE_CHECKING:
    from bandanna.logs.ratios import RatioAnswer

TOGETHER = "All differences hold together, and so do all lifts, provided {}."


@dataclass(frozen=True, kw_only=True)
class LogAnswer(Answer):
    """The private answer from a log: an ``Answer`` with differences, gains and a certificate."""

    differences: tuple[Comparison, ...]
    """Every other arm against the one with the best released mean, or against the control. They
    hold together with the confidence, over all pairs of arms or all pairs with the control."""
    gains: tuple[Gain, ...]
    needed: Needed | None
    """How many rows would settle it four times in five; None where it is settled."""
    mixed: int
    """How many people met more than one arm: they count with the first."""
    guarantee: Guarantee
    certificate: JSON
    start: Start | None = field(repr=False)
    """What was released, for ``PrivateBandit(..., start_from=)``."""
    notes: tuple[str, ...]
    """What was counted up to what, and what an adjustment gained."""
    interval: Kind
    """How intervals are made."""
    control: ArmName | None
    """The arm that all others are compared with, fixed beforehand."""
    look: OneLook = field(repr=False, compare=False)
    """Released sums of losses, and intervals from them."""
    groups: tuple[tuple[str, OneLook], ...] = field(repr=False, compare=False)
    """The same of each group of people, by its name."""

    def scorecard(
        self,
        control: ArmName | None = None,
        *,
        shares: Mapping[ArmName, float] | None = None,
    ) -> Scorecard:
        """Return what a team decides from: every arm against the control, in one view.

        Parameters
        ----------
        control
            The arm to compare with; by default the one that was fixed, or the first.
        shares
            How people were meant to be divided over arms; in equal parts by default.
        """
        metric, groups = self.effects(control)
        return card_of(self, [metric], self.checks(shares), groups, planned=shares is not None)

    def effects(
        self,
        control: ArmName | None,
        limit: float | None = None,
    ) -> tuple[Metric, tuple[tuple[str, Metric], ...]]:
        """Return every arm against the control, over all people and in each group.

        Differences hold together with the answer's confidence, and so do those of all groups.
        """
        look, names = self.look, [arm.name for arm in self.arms]
        base = self.control if control is None else control
        against = 0 if base is None else index_of(names, base)
        pairs = len(names) - 1
        if self.control is None or names[against] != self.control:
            pairs = len(names) * pairs // 2  # whatever was looked at before it was named
        alpha = (1.0 - self.confidence) / pairs
        goal: Goal = "more" if self.units.reward else "less"
        told = partial(metric_of, goal=goal, limit=limit, lifts=self.start is not None)
        note = self.units.counted if self.units.clip else ""
        metric = told(names, look, self.units, against, alpha, note=note)
        groups = tuple(
            (name, told(names, one, self.units, against, alpha / len(self.groups)))
            for name, one in self.groups
        )
        return metric, groups

    @property
    def protects(self) -> str:
        """What is protected."""
        return PRESENCE if self.hidden else protected_in_log(self.units.per)

    @property
    def hidden(self) -> bool:
        """Whether who is in the log is protected too: numbers of people then have noise."""
        return self.look.arms[0].present

    @property
    def more(self) -> str:
        """What to do where it is open: how many people would settle it, and how to look again."""
        needed = "" if self.needed is None else self.needed.words(self.units.per)
        again = "To look again as rows come in, run it as an experiment: that holds at every look."
        return f"{needed} {again}".strip()

    def checks(self, shares: Mapping[ArmName, float] | None = None) -> tuple[Check, ...]:
        """Return what public counts, and what was released, say of how the experiment went."""
        names, sizes = [arm.name for arm in self.arms], [arm.rounds for arm in self.arms]
        checked = []
        if not self.hidden:
            checked.append(sample_ratio(names, sizes, shares, self.units.per))
            if self.units.per == "people":
                checked.append(met_once(self.mixed, sum(sizes)))
        checked += [Check("counted", None, note) for note in self.notes]
        if not self.notes:
            checked.append(in_range(self.units))
        if self.warning:
            checked.append(Check("small", False, self.warning))
        return tuple(checked)

    def compare(
        self, first: ArmName, second: ArmName, *, confidence: float | None = None
    ) -> Comparison:
        """Compare two arms that were chosen before looking: it holds by itself.

        Pairs that are picked by what they show need ``differences``, which hold together.
        """
        sure_of = self.confidence if confidence is None else check_confidence(confidence)
        names = [arm.name for arm in self.arms]
        a, b = index_of(names, first), index_of(names, second)
        if a == b:
            raise InputError(f"compare two different arms; got {first!r} twice.")
        return comparison(self.look, names, a, b, 1.0 - sure_of, self.units, sure_of)

    def to_dict(self) -> JSON:
        """Return everything as plain values, for JSON."""
        start = None if self.start is None else self.start.to_dict()
        return super().to_dict() | {
            "differences": [comparison.to_dict() for comparison in self.differences],
            "gains": [gain.to_dict() for gain in self.gains],
            "needed": None if self.needed is None else self.needed._asdict(),
            "interval": self.interval,
            "control": self.control,
            "notes": list(self.notes),
            "mixed": self.mixed,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "protects": self.protects,
            "certificate": self.certificate,
            "start": start and {key: start[key] for key in start if key != "certificate"},
        }

    @property
    def shown(self) -> tuple[Comparison, ...]:
        """The differences that the sentence does not say already."""
        said = self.best is not None and len(self.arms) == 2
        return () if said else self.differences

    @property
    def together(self) -> str:
        """How sure it is, and when it may be looked at."""
        said = f"{100 * self.confidence:.4g}% sure"
        return (
            f"All that is said of pairs of arms holds together, {said}, and each arm's interval by "
            f"itself, provided {self.assumption}. {self.looks}"
        )

    def _lines(self) -> list[str]:
        *lines, together = super()._lines()
        lines += [*self.notes, *(comparison.sentence for comparison in self.shown)]
        lines += [*(gain.sentence for gain in self.gains), together]
        promised = str(self.guarantee).splitlines()[0], f"protects:  {self.protects}"
        return [*map(self.bare, lines), *promised]

    def bare(self, sentence: str) -> str:
        """Return a sentence without what holds for all of them, which is said once."""
        return sentence.replace(f", {sure(self.confidence)}, provided {self.assumption}", "")

    def _repr_html_(self) -> str:
        said = "".join(paragraph(gain.sentence) for gain in self.gains)
        return self.scorecard()._repr_html_() + said

    def html(self) -> str:
        """Return a whole page for a browser."""
        return self.scorecard().html()


def card_of(
    first: LogAnswer | RatioAnswer,
    metrics: Sequence[Metric],
    health: Sequence[Check],
    groups: tuple[tuple[str, Metric], ...],
    *,
    planned: bool,
) -> Scorecard:
    """Return the scorecard of an answer, or of several with the ``first`` of them.

    How people were divided counts where shares were ``planned``.
    """
    return Scorecard(
        recommend(metrics, health if planned else (), first.more),
        tuple(metrics),
        first.confidence,
        first.guarantee.epsilon,
        first.guarantee.delta,
        first.protects,
        TOGETHER.format(first.assumption),
        first.looks,
        tuple(health),
        groups=groups,
        certificates=(first.certificate,),
    )


def comparison(
    look: OneLook,
    names: Sequence[ArmName],
    a: int,
    b: int,
    alpha: float,
    units: Units,
    confidence: float,
) -> Comparison:
    """Return how two arms differ, in the user's units, with an error probability of its own."""
    more, interval = look.between(a, b, alpha)
    words = difference_words(names[a], names[b], more, interval, units)
    sentence = f"{words}, {sure(confidence)}, provided {AT_RANDOM}."
    size, low, high = units.difference(more, interval)
    return Comparison(names[a], names[b], size, low, high, sentence, confidence, AT_RANDOM)


def protected_in_log(per: str) -> str:
    """Say what an answer from a log protects."""
    if per == "people":
        return (
            "all outcomes of any one person; that they are in the log, and with which arm, is not "
            "hidden"
        )
    return "the outcome of any one row; that it is in the log, and with which arm, is not hidden"


def met_once(mixed: int, people: int) -> Check:
    """Return how many people met more than one arm; a hundredth of them are too many."""
    if not mixed:
        return Check("mixed", True, "Nobody met two arms.")
    text = f"{mixed:,} of {people:,} people met two arms or more; they count with the first."
    return Check("mixed", mixed <= 0.01 * people, text)


def in_range(units: Units) -> Check:
    """Say what a range does to outcomes; how many it cuts is private."""
    if not units.clip:
        return Check("range", True, "No outcome is outside of the stated range.")
    ends = f"{plain(units.low)} to {plain(units.high)}"
    text = f"What is outside of {ends} is counted as the nearer end; how often was not asked."
    return Check("counted", None, text)


def how_made(kind: Kind) -> str:
    """Say what the intervals are."""
    return f"The intervals are for one look at a finished log, {HOW[kind]}."
