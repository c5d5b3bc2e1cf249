"""The first phase of a policy that is to find how outcomes are counted: a range, or a slope too.

Its rounds are used for that alone, with all of epsilon, in the parts of ``privacy.bought``. Batches
that open before it is released keep their outcomes as they were sent, and count them when they
close. Rounds are in one of the two, so each costs epsilon at most (parallel composition).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandanna._core.grid import UNITS, LossRange
from bandanna._core.scale import Scale
from bandanna._core.types import plain
from bandanna.policy.parts import outcome_problem, rounds_of_first
from bandanna.policy.state import Found
from bandanna.privacy.bought import (
    Sample,
    adjusted_bounds,
    buy,
    cut_words,
    planned_parts,
    shares_of_whole,
)
from bandanna.privacy.log_release import SideRelease
from bandanna.privacy.release import Metrics
from bandanna.spec import Spec


class Value(NamedTuple):
    """What came of a round, or of a person's slot, before it is scaled. Private."""

    arm: int
    units: int
    """The loss as it was sent."""
    metrics: Metrics
    """None if nothing came: then the loss is the default one."""
    before: float

    def __repr__(self) -> str:
        return f"Value(arm={self.arm}, ...)"


@dataclass(frozen=True)
class FirstPhase:
    """How long it is, and what it releases."""

    epsilon: float
    rounds: int
    loss_range: LossRange
    adjust: str | None
    slope: float | None

    @classmethod
    def of(cls, spec: Spec) -> FirstPhase | None:
        """Return that of a policy; None where nothing is to be found."""
        if not spec.finds:
            return None
        epsilon, rounds = outcome_problem(spec).epsilon, rounds_of_first(spec)
        return cls(epsilon, rounds, spec.loss_range, spec.adjust, spec.slope)

    @property
    def whole(self) -> float:
        """Of which epsilon the shares for what it finds come to its own."""
        return shares_of_whole(self.epsilon, adjust=self.adjust is not None, slope=self.slope)

    @property
    def parts(self) -> tuple[SideRelease, ...]:
        """All that may be released of one of its rounds."""
        return planned_parts(self.whole, adjust=self.adjust is not None, slope=self.slope)

    def find(self, values: Sequence[Value], *, reward: bool) -> Found:
        """Release how outcomes are to be counted. Call it once."""
        seen = [one for one in values if one.metrics is not None]
        if len(seen) < 2:  # how many came is public
            bounds, slope = self.loss_range, self.slope or 0.0
            ends = bounds if self.adjust is None else adjusted_bounds(bounds, slope)
            return Found(Scale(*ends, slope), len(seen), kept=True)
        units = np.array([one.units for one in seen], dtype=np.int64)
        before = np.array([one.before for one in seen]) if self.adjust is not None else None
        arms = np.array([one.arm for one in seen], dtype=np.int64)
        sample = Sample(UNITS - units if reward else units, arms, self.loss_range, before)
        made = buy(
            sample,
            self.whole,
            auto=True,
            adjust=self.adjust,
            slope=self.slope,
            adjusted_range=None,
        )
        return Found(made.scale, len(seen), made.cut, made.cut_noise, made.related, made.kept)


def found_words(found: Found, per: str) -> str:
    """Say what the first phase found."""
    low, high, _ = found.scale
    first = f"{found.rounds:,} {per} of the first phase, which are used for nothing else"
    if found.cut is None:
        return (
            f"Too few outcomes of {first}, tell a range: everything from {plain(low)} to "
            f"{plain(high)} is counted."
        )
    cut, most = cut_words(found.cut, found.cut_noise, found.rounds)
    said = (
        f"The range, {low:.6g} to {high:.6g}, was found from {first}; about "
        f"{cut} in a hundred were cut by it, 95% sure at most {most}."
    )
    if found.related is None:
        return said
    return (
        f"{said} What was known before explains about {100.0 * found.related:.0f} in a hundred of "
        f"how much outcomes vary."
    )
