"""Reading what a policy has learned: what it would do now, and what its releases say of arms.

All of it follows from released values, so it may be shown to anyone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bandanna._core.html import paragraph, table
from bandanna._core.types import ArmName, InputError
from bandanna.policies.afterwards import stationarity_words
from bandanna.privacy.sums import SumRelease

if TYPE_CHECKING:
    from bandanna.policies.shown import Shown

MISSED = 0.05
"""How often an interval may miss what it is for, at any of the times one looks."""


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
    """Mean loss of those batches, estimated without bias; None before the first."""
    low: float | None
    high: float | None
    """Noise leaves the true mean of those batches between these, but for one time in twenty."""


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

    def __str__(self) -> str:
        width = max(len(str(row.arm)) for row in self.rows)
        lines = [f"{self.decided:,} decided, {self.released:,} batches released"]
        for row in self.rows:
            chance = "   -  " if row.chance is None else f"{row.chance:6.1%}"
            mean = "no release yet"
            if row.mean is not None:
                mean = f"mean loss {row.mean:.4g} ({row.low:.4g} to {row.high:.4g})"
            share = "" if row.share is None else f"{row.share:.1%} of decisions, "
            lines.append(f"  {row.arm!s:{width}}  {chance}  {share}{row.batches:,} batches, {mean}")
        if self.stationarity:
            lines.append(f"  {self.stationarity}")
        if self.hint:
            lines.append(f"  {self.hint}.")
        return "\n".join(lines)

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
        headings = ["arm", "chance", "share so far", "batches", "mean loss", "95% sure"]
        return table(said, headings, rows) + paragraph(self.stationarity) + paragraph(self.hint)


def chances_of(policy: Shown) -> dict[ArmName, float]:
    """Return the probabilities of the next draw."""
    found = policy._player.chances()
    if found is None:
        raise InputError(f"{policy.recipe.learner.name} knows no probabilities of what it draws.")
    return dict(zip(_names(policy), map(float, found), strict=True))


def leader_of(policy: Shown) -> ArmName:
    """Return what is likeliest to be drawn, or has the smallest mean where chances are unknown."""
    everything = enumerate(summary_of(policy).rows)
    rows = [row for arm, row in everything if policy.experts or arm not in policy.retired]
    if rows[0].chance is not None:
        return max(rows, key=lambda row: row.chance or 0.0).arm
    known = [row for row in rows if row.mean is not None]
    if not known:
        raise InputError("nothing has been released yet: there is no leader.")
    return min(known, key=lambda row: row.mean or 0.0).arm


def summary_of(policy: Shown) -> Summary:
    """Return what is known of every arm, or of every expert."""
    chances = policy._player.chances()
    names, ledger = _names(policy), policy._ledger
    rows = [
        ArmSummary(
            name,
            None if chances is None else float(chances[choice]),
            None if policy._player.weighs else ledger.played.get(choice, 0) / max(1, ledger.rounds),
            *_estimate(policy, choice),
        )
        for choice, name in enumerate(names)
    ]
    seen = policy._player.report().guard
    return Summary(rows, ledger.rounds, ledger.released, stationarity_words(seen), policy.hint)


def _names(policy: Shown) -> tuple[ArmName, ...]:
    return policy.arms if policy.experts is None else tuple(range(policy.experts))


def _estimate(policy: Shown, choice: int) -> tuple[int, float | None, float | None, float | None]:
    """Return batches, mean and interval.

    The interval holds for all numbers of batches at once: for n of them it may miss with
    probability ``MISSED / (n (n + 1))``, and these add up to ``MISSED``.
    """
    told, release = policy._ledger.told.get(choice), policy.recipe.release
    if told is None or not isinstance(release, SumRelease) or policy._player.weighs:
        return 0 if told is None else told.batches, None, None, None
    n = told.batches
    reading = release.read(told, math.log(2.0 * n * (n + 1) / MISSED))
    if reading is None:
        return n, None, None, None
    low, high = policy.loss_range
    mean, below, above = (
        low + (high - low) * value
        for value in (
            reading.mean,
            max(0.0, min(1.0, reading.mean - reading.radius)),
            max(0.0, min(1.0, reading.mean + reading.radius)),
        )
    )
    return n, mean, below, above
