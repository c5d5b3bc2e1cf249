"""Reading what a policy has learned: what it would do now, and what its releases say of arms.

All of it follows from released values, so it may be shown to anyone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bandanna._core.html import paragraph, table
from bandanna._core.types import ArmName, InputError
from bandanna.inference import Totals
from bandanna.policies.afterwards import stationarity_words
from bandanna.policies.answers import (
    Answer,
    AnyTime,
    Comparison,
    Units,
    answer_from,
    compare_from,
    leader_from,
)
from bandanna.privacy.sums import SumRelease

if TYPE_CHECKING:
    from bandanna.policies.shown import Shown

CONFIDENCE = 0.95
"""Of the intervals that are shown unless another is asked for."""


class ArmSummary(NamedTuple):
    """What is known of an arm, or of an expert by its index."""

    arm: ArmName
    chance: float | None
    """With which probability it would be drawn now."""
    share: float | None
    """Which share of all decisions so far it was given; None where experts are weighed."""
    batches: int
    """How many of its batches were released."""
    mean: float | None
    """The estimated mean, in the user's units and direction; None before the first release."""
    low: float | None
    high: float | None
    """The 95% interval of the mean, for sampling and noise together, at whatever time one looks;
    provided the arm's outcomes do not change over time."""


@dataclass(frozen=True)
class Summary:
    """What a policy has learned, arm by arm."""

    rows: list[ArmSummary]
    decided: int
    released: int
    stationarity: str = ""
    """What the guard of ``dp-klucb`` has seen, in a sentence."""
    hint: str = ""
    """Why nothing is learned, and what to do; empty where nothing is wrong."""
    answer: Answer | None = None
    """Which arm is best, if that can be said."""

    def __str__(self) -> str:
        width = max(len(str(row.arm)) for row in self.rows)
        lines = [f"{self.decided:,} decided, {self.released:,} batches released"]
        for row in self.rows:
            chance = "   -  " if row.chance is None else f"{row.chance:6.1%}"
            mean = "no release yet"
            if row.mean is not None:
                mean = f"mean {self.outcome} {row.mean:.4g} ({row.low:.4g} to {row.high:.4g})"
            share = "" if row.share is None else f"{row.share:.1%} of decisions, "
            lines.append(f"  {row.arm!s:{width}}  {chance}  {share}{row.batches:,} batches, {mean}")
        if self.stationarity:
            lines.append(f"  {self.stationarity}")
        if self.hint:
            lines.append(f"  {self.hint}.")
        if self.answer is not None:
            lines.append(f"  {self.answer.sentence}")
        return "\n".join(lines)

    @property
    def outcome(self) -> str:
        """What means are of: loss or reward."""
        return "loss" if self.answer is None else self.answer.units.noun

    def _repr_html_(self) -> str:
        rows = [
            [
                str(row.arm),
                "-" if row.chance is None else f"{row.chance:.1%}",
                "-" if row.share is None else f"{row.share:.1%}",
                f"{row.batches:,}",
                "-" if row.mean is None else f"{row.mean:.4g}",
                "-" if row.mean is None else f"{row.low:.4g} to {row.high:.4g}",
            ]
            for row in self.rows
        ]
        said = f"{self.decided:,} decided, {self.released:,} batches released"
        mean = f"mean {self.outcome}"
        headings = ["arm", "chance", "share so far", "batches", mean, "95% interval"]
        sentence = "" if self.answer is None else self.answer.sentence
        return (
            table(said, headings, rows)
            + paragraph(self.stationarity)
            + paragraph(self.hint)
            + paragraph(sentence)
        )


def chances_of(policy: Shown) -> dict[ArmName, float]:
    """Return the probabilities of the next draw."""
    found = policy._player.chances()
    if found is None:
        raise InputError(f"{policy.recipe.learner.name} knows no probabilities of what it draws.")
    return dict(zip(_names(policy), map(float, found), strict=True))


def leader_of(policy: Shown) -> ArmName | None:
    """Return the arm, or expert, with the smallest released mean loss; None while unknown."""
    names, totals, _, method = released_of(policy)
    return leader_from(names, totals, method, _running(policy))


def likeliest_of(policy: Shown) -> ArmName | None:
    """Return what is likeliest to be drawn next; None where chances are not known."""
    chances = policy._player.chances()
    if chances is None:
        return None
    return _names(policy)[max(_running(policy), key=lambda arm: chances[arm])]


def answer_of(policy: Shown, confidence: float, outcome: str) -> Answer:
    """Return which arm, or expert, is best, and what is known of each."""
    seen = policy._player.report().guard
    changing = seen is not None and seen["alarm"]
    return answer_from(
        *released_of(policy),
        _units(policy, outcome),
        confidence=confidence,
        among=_running(policy),
        warning=stationarity_words(seen) if changing else "",
    )


def compare_of(
    policy: Shown, first: ArmName, second: ArmName, confidence: float, outcome: str
) -> Comparison:
    """Return how two arms, or experts, differ."""
    names, totals, _, method = released_of(policy)
    units = _units(policy, outcome)
    return compare_from(names, totals, method, units, first, second, confidence=confidence)


def summary_of(policy: Shown) -> Summary:
    """Return what is known of every arm, or of every expert."""
    chances = policy._player.chances()
    ledger, answer = policy._ledger, answer_of(policy, CONFIDENCE, "")
    told = ledger.told
    rows = [
        ArmSummary(
            arm.name,
            None if chances is None else float(chances[choice]),
            None if policy._player.weighs else ledger.played.get(choice, 0) / max(1, ledger.rounds),
            told[choice].batches if choice in told else 0,
            arm.mean,
            None if arm.mean is None else arm.low,
            None if arm.mean is None else arm.high,
        )
        for choice, arm in enumerate(answer.arms)
    ]
    seen = policy._player.report().guard
    known = answer if any(row.mean is not None for row in rows) else None
    said = stationarity_words(seen), policy.hint
    return Summary(rows, ledger.rounds, ledger.released, *said, known)


class Known(NamedTuple):
    """What was released, as ``bandanna.policies.answers`` takes it."""

    names: tuple[ArmName, ...]
    totals: dict[int, Totals]
    rounds: dict[int, float]
    method: AnyTime | None


def released_of(policy: Shown) -> Known:
    """Return what was released of each arm, or of each expert that batches follow."""
    names, release, told = _names(policy), policy.recipe.release, policy._ledger.told
    if not isinstance(release, SumRelease) or policy._player.weighs:
        return Known(names, {}, {}, None)
    law = release.law()
    totals = {arm: release.totals(values) for arm, values in told.items()}
    rounds = {arm: values.rounds for arm, values in told.items()}
    return Known(names, totals, rounds, None if law is None else AnyTime(law))


def _names(policy: Shown) -> tuple[ArmName, ...]:
    return policy.arms if policy.experts is None else tuple(range(policy.experts))


def _running(policy: Shown) -> tuple[int, ...]:
    return policy.active if policy.experts is None else tuple(range(policy.experts))


def _units(policy: Shown, outcome: str) -> Units:
    per = "decisions" if policy.people is None else "people"
    return Units(*policy.loss_range, policy.rewarded, outcome, per)
