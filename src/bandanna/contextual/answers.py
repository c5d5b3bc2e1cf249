"""What a contextual policy has learned, from what was released: safe to publish."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bandanna._core.html import table
from bandanna._core.types import JSON, ArmName
from bandanna.contextual.features import Encoder
from bandanna.contextual.regression import Fit

CAVEAT = (
    "These are estimates of a linear model with standard errors: no interval is proved. An arm "
    "that is seldom played, or not linear in the features, may be far off. People with unusual "
    "features count less. What deciding by context earns is not released."
)
NOTHING = "Nothing was released yet: which arm is best, and for whom, cannot be told."


@dataclass(frozen=True)
class ArmEstimate:
    """One arm's estimated mean reward for a person with average features."""

    arm: ArmName
    mean: float
    error: float
    """Standard error, noise and sampling together."""

    @property
    def name(self) -> ArmName:
        """The arm, as answers of other policies call it."""
        return self.arm


@dataclass(frozen=True)
class FeatureAnswer:
    """How much a feature changes which arm is best."""

    feature: str
    strength: float
    """Standard deviation, between people and arms, of what the feature adds to the reward."""


@dataclass(frozen=True)
class ContextAnswer:
    """What was learned: estimates of a linear model, not proven intervals."""

    arms: tuple[ArmEstimate, ...]
    features: tuple[FeatureAnswer, ...]
    """Strongest first."""

    @property
    def best(self) -> ArmName | None:
        """The arm with the highest estimated mean; None before the first release."""
        return max(self.arms, key=lambda one: one.mean).arm if self.arms else None

    @property
    def sentence(self) -> str:
        """What was learned, in a sentence."""
        if not self.arms:
            return NOTHING
        best = max(self.arms, key=lambda one: one.mean)
        return (
            f"By a linear model {best.arm} is the best single arm: {best.mean:.3f} for a person "
            f"with average features (standard error {best.error:.3f}; no interval is proved). What "
            f"deciding by context earns is not released."
        )

    def to_dict(self) -> JSON:
        """Return it as plain values, for JSON; no interval is proved, so there is none in it."""
        return {
            "best": self.best,
            "sentence": self.sentence,
            "warning": CAVEAT if self.arms else None,
            "arms": [
                {"name": one.arm, "mean": one.mean, "error": one.error, "low": None, "high": None}
                for one in self.arms
            ],
            "features": [{"name": one.feature, "strength": one.strength} for one in self.features],
        }

    def __str__(self) -> str:
        if not self.arms:
            return NOTHING
        lines = [self.sentence]
        lines += [f"  {one.arm}: {one.mean:.3f} +- {one.error:.3f}" for one in self.arms]
        lines.append("features by strength:")
        lines += [f"  {one.feature}: {one.strength:.3f}" for one in self.features]
        lines.append(CAVEAT)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [[str(one.arm), f"{one.mean:.3f}", f"{one.error:.3f}"] for one in self.arms]
        return table("What was learned", ["arm", "mean reward", "standard error"], rows)


def answer_of(
    fitted: Fit | None,
    encoder: Encoder,
    names: tuple[ArmName, ...],
    loss_range: tuple[float, float],
) -> ContextAnswer:
    """Return what follows from the releases so far."""
    if fitted is None:
        return ContextAnswer((), ())
    low, span = loss_range[0], loss_range[1] - loss_range[0]
    average = fitted.moments[0] / fitted.moments[0, 0] * encoder.constant
    coefficients = fitted.scores.coefficients
    means = np.clip(0.5 + coefficients @ average, 0.0, 1.0)
    spread = np.sqrt(np.maximum(np.einsum("i,aij,j->a", average, fitted.errors, average), 0.0))
    arms = tuple(
        ArmEstimate(name, low + span * float(mean), span * float(error))
        for name, mean, error in zip(names, means, spread, strict=True)
    )
    return ContextAnswer(arms, _strengths(encoder, coefficients, fitted.moments, span))


def _strengths(
    encoder: Encoder,
    coefficients: NDArray[np.float64],
    moments: NDArray[np.float64],
    span: float,
) -> tuple[FeatureAnswer, ...]:
    average = moments[0] / moments[0, 0] * encoder.constant
    weight = moments[0, 0] / encoder.constant**2
    covariance = moments / weight - np.outer(average, average)
    apart = coefficients - coefficients.mean(axis=0)
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(encoder.names[1:], start=1):
        groups.setdefault(name.partition("=")[0], []).append(i)
    strengths = []
    for name, columns in groups.items():
        part = covariance[np.ix_(columns, columns)]
        squares = np.einsum("ai,ij,aj->a", apart[:, columns], part, apart[:, columns])
        strength = span * math.sqrt(max(float(squares.mean()), 0.0))
        strengths.append(FeatureAnswer(name, strength))
    return tuple(sorted(strengths, key=lambda one: -one.strength))
