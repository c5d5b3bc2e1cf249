"""A log is a sample: what it says about its arms, and how surely.

These numbers are computed from people's rows as they are. They are for people who may see the log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandanna._core.grid import UNITS
from bandanna._core.types import JSON
from bandanna.environments.log import Log

UNPROTECTED = (
    "Numbers from a log are computed from people's rows without protection: do not publish them. "
    "bandanna answer releases private ones."
)
AS_TRUE = "The rehearsal takes the log's means as true; it does not draw them from their errors."
FEWEST, OF_EVEN = 100, 0.02
"""An arm has few rows below this number, or below this share of an even split."""
SURE = 0.05
"""How often the best arm may be called clearly best by chance, about."""


class SampledArm(NamedTuple):
    """An arm as a log has it."""

    name: str
    rows: int
    mean: float
    """Its mean outcome, in the log's units."""
    error: float
    """Standard error of the mean. One row at each end of the range is added for it, so that an arm
    whose few rows are all alike is not taken for certain."""
    few: bool

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return {**self._asdict(), "standard_error": self.error}


@dataclass(frozen=True)
class LogSample:
    """What a log says about its arms."""

    arms: tuple[SampledArm, ...]
    best: str
    """The arm with the best mean."""
    clearly: bool
    """Whether it is better than every other arm by more than the errors explain."""
    near: tuple[str, ...]
    """The arms that may be as good."""
    outcome: str = ""

    @property
    def few(self) -> tuple[str, ...]:
        """Arms with few rows."""
        return tuple(arm.name for arm in self.arms if arm.few)

    @property
    def sentence(self) -> str:
        """Which arm is best in the log, and whether that is clear."""
        if self.clearly:
            said = f"{self.best} has the best mean in the log, clearly."
        else:
            said = (
                f"{self.best} has the best mean in the log, but not clearly: "
                f"{_listed(self.near)} may be as good."
            )
        if self.few:
            have = "has" if len(self.few) == 1 else "have"
            said += (
                f" {_listed(self.few)} {have} few rows: mistyped names, or a column of numbers "
                f"taken as arms?"
            )
        return said

    @property
    def rows(self) -> list[list[str]]:
        """The table's rows, as text: arm, rows, mean, standard error."""
        return [
            [arm.name, f"{arm.rows:,}", f"{arm.mean:.4g}", f"{arm.error:.2g}"] for arm in self.arms
        ]

    def to_dict(self) -> JSON:
        """Return it as plain values."""
        return {
            "arms": [arm.to_dict() for arm in self.arms],
            "best": self.best,
            "clearly": self.clearly,
            "near": list(self.near),
            "few": list(self.few),
            "sentence": self.sentence,
            "protection": UNPROTECTED,
            "uncertainty": AS_TRUE,
        }


def sample_of(log: Log, *, reward: bool, outcome: str = "") -> LogSample:
    """Return what a log says about its arms.

    Rows are weighed by one over their propensity, as rehearsals weigh them. The best arm is
    clearly best if it is ahead of each other arm by more than the normal quantile for
    ``0.05 / K`` times the error of the difference, and neither has few rows.
    """
    from scipy.special import ndtri  # loaded when first used

    low, high = log.loss_range
    weights, arms = 1.0 / log.chances(), len(log.arm_names)
    least = max(FEWEST, OF_EVEN * log.size / arms)
    found, losses, errors = [], np.zeros(arms), np.zeros(arms)
    for arm, name in enumerate(log.arm_names):
        mine = log.arms == arm
        units, weight = log.units[mine] / UNITS, weights[mine]
        mean = min(max(float(weight @ units / weight.sum()), 0.0), 1.0)
        each = float(weight.mean())
        squares = float((weight**2) @ (units - mean) ** 2)
        squares += each**2 * (mean**2 + (1.0 - mean) ** 2)
        losses[arm], errors[arm] = mean, math.sqrt(squares) / (float(weight.sum()) + 2.0 * each)
        shown = high - (high - low) * mean if reward else low + (high - low) * mean
        rows = int(mine.sum())
        found.append(SampledArm(name, rows, shown, (high - low) * errors[arm], rows < least))
    solid = [arm for arm in range(arms) if not found[arm].few] or list(range(arms))
    best = min(solid, key=lambda arm: losses[arm])
    sure = float(-ndtri(SURE / arms))
    near = [
        arm
        for arm in range(arms)
        if arm != best
        and losses[arm] - losses[best] <= sure * math.hypot(errors[arm], errors[best])
    ]
    clearly = not near and not found[best].few
    names = tuple(found[arm].name for arm in near)
    return LogSample(tuple(found), found[best].name, clearly, names, outcome)


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:5])
    if len(names) > 5:
        return f"{', '.join(shown)} and {len(names) - 5} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)
