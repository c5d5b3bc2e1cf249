"""What a contextual policy has learned, from what was released: safe to publish."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bandanna._core.html import table
from bandanna._core.types import JSON, ArmName
from bandanna.contextual.features import Encoder
from bandanna.contextual.regression import OUTCOME_VARIANCE, Noise, read_release
from bandanna.contextual.state import State

CAVEAT = (
    "These are estimates of a linear model with standard errors: no interval is proved. An arm "
    "that is seldom played, or not linear in the features, may be far off."
)
NOTHING = "Nothing was released yet: which arm is best, and for whom, cannot be told."


@dataclass(frozen=True)
class ArmAnswer:
    """One arm's estimated mean reward for the average person."""

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

    arms: tuple[ArmAnswer, ...]
    features: tuple[FeatureAnswer, ...]
    """Strongest first."""
    rewards: tuple[float, ...]
    """Mean reward that was obtained in each released epoch."""
    errors: tuple[float, ...]
    """Their standard errors."""

    @property
    def best(self) -> ArmName | None:
        """The arm with the highest estimated mean; None before the first release."""
        return max(self.arms, key=lambda one: one.mean).arm if self.arms else None

    @property
    def gain(self) -> float | None:
        """Reward in the last epoch above the best single arm's estimated mean."""
        if not self.arms:
            return None
        return self.rewards[-1] - max(one.mean for one in self.arms)

    @property
    def sentence(self) -> str:
        """What was learned, in a sentence."""
        if not self.arms:
            return NOTHING
        return (
            f"Deciding by context earned {self.rewards[-1]:.3f} a round in the last epoch "
            f"(standard error {self.errors[-1]:.3f}), {self.gain:+.3f} against the best single "
            f"arm, {self.best}, by its estimate."
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
            "rewards": list(self.rewards),
            "errors": list(self.errors),
            "gain": self.gain,
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
    state: State,
    encoder: Encoder,
    names: tuple[ArmName, ...],
    loss_range: tuple[float, float],
    noise: Noise,
    both: bool,
) -> ContextAnswer:
    """Return what follows from the releases so far."""
    fitted = state.fitted
    if fitted is None:
        return ContextAnswer((), (), (), ())
    low, span = loss_range[0], loss_range[1] - loss_range[0]
    average = fitted.moments[0] / fitted.moments[0, 0] * encoder.constant
    coefficients = fitted.scores.coefficients
    means = np.clip(0.5 + coefficients @ average, 0.0, 1.0)
    spread = np.sqrt(np.maximum(np.einsum("i,aij,j->a", average, fitted.errors, average), 0.0))
    arms = tuple(
        ArmAnswer(name, low + span * float(mean), span * float(error))
        for name, mean, error in zip(names, means, spread, strict=True)
    )
    rewards, errors = [], []
    for past in state.past:
        release = read_release(past.statistics, past.transform, past.rounds, noise, both=both)
        weight = max(float(release.products[:, 0, 0].sum()), 1e-9)
        rewards.append(low + span * (0.5 + encoder.constant * release.sums[:, 0].sum() / weight))
        blur = len(names) * noise.sums**2 * release.shape[0, 0] * encoder.constant**2
        share = OUTCOME_VARIANCE / max(release.observed, 1.0)
        errors.append(span * math.sqrt(blur / weight**2 + share))
    return ContextAnswer(
        arms, _strengths(encoder, coefficients, fitted.moments, span), tuple(rewards), tuple(errors)
    )


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
    found = []
    for name, columns in groups.items():
        part = covariance[np.ix_(columns, columns)]
        squares = np.einsum("ai,ij,aj->a", apart[:, columns], part, apart[:, columns])
        strength = span * math.sqrt(max(float(squares.mean()), 0.0))
        found.append(FeatureAnswer(name, strength))
    return tuple(sorted(found, key=lambda one: -one.strength))
