"""The three laws of a vector release: their numbers, and the proof of each from them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from bandanna._core.advice import MAX_EXPERTS
from bandanna._core.types import SMALLEST_DELTA, InputError, Model
from bandanna.privacy.calibration import (
    GRID,
    MAX_BATCH,
    SLACK,
    SMALLEST_COMPOSED,
    Calibration,
    composed_laplace_delta,
    gaussian_delta,
    gaussian_multiplier,
)
from bandanna.privacy.losses import continuous_laplace_loss, gaussian_loss
from bandanna.privacy.mechanism import Finding, Mechanism, Numerics, PrivacyLoss
from bandanna.privacy.statements import POST_PROCESSING


@dataclass(frozen=True)
class VectorMechanism(Mechanism):
    """Independent noise on each expert's sum, in proportion to what one loss can move."""

    experts: int
    multiplier: float
    """Noise per unit of the largest total move, single move or length of a move."""
    least: float
    """Smallest scale of noise, whatever the batch."""

    @property
    def model(self) -> Model:
        """Sums over experts are kept until a batch is released."""
        return "central"

    @property
    @abstractmethod
    def noise(self) -> Calibration:
        """The law with its multiplier."""

    @abstractmethod
    def prove(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough."""

    def check(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough, and a grid that is fine enough for it."""
        possible = {
            "units": self.units == GRID,
            "batch": self.batch <= MAX_BATCH,
            "experts": self.experts <= MAX_EXPERTS,
            "multiplier": 1e-3 <= self.multiplier <= 1e15,
            "delta": delta == 0 or SMALLEST_DELTA <= delta < 1,
        }
        wrong = [entry for entry, good in possible.items() if not good]
        if wrong:
            yield Finding(wrong[0], False, "no release has such a number")
            return
        proof = list(self.prove(epsilon, delta))
        yield from proof
        if all(finding.holds for finding in proof) and not self.fits(epsilon, delta):
            yield Finding("multiplier", False, "is not the noise of this epsilon and delta")
        floor = self.noise._replace(epsilon=epsilon).least
        enough = self.least in (floor, max(floor, self.worst))
        yield Finding("least", enough, "the noise is coarse enough against the grid")

    @abstractmethod
    def fits(self, epsilon: float, delta: float) -> bool:
        """Whether there is no more noise than this promise needs, so that it is no other's."""

    @property
    def worst(self) -> float:
        """The scale for the largest move there could be, where all batches get that."""
        return 0.0

    def one_loss(self, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of one round."""
        raise InputError(f"no accounting for mechanism {self.name!r}: its guarantee is pure.")

    def loss(self, epsilon: float, rounds: int, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution."""
        single = self.one_loss(numerics)
        return single if rounds == 1 else single.self_compose(rounds)


class VectorLaplace(VectorMechanism):
    """Pure Laplace noise."""

    reasons: ClassVar[tuple[str, ...]] = (
        "one loss moves the sums by a known vector whose total is at most epsilon scales; "
        f"{POST_PROCESSING}",
    )

    name: ClassVar[str] = "vector-laplace"
    sampler: ClassVar[str] = "OpenDP discrete Laplace, i64"

    @property
    def noise(self) -> Calibration:
        """The law with its multiplier."""
        return Calibration("laplace", self.multiplier, math.inf, math.inf, self.experts, 1.0)

    def prove(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough, in exact fractions."""
        enough = Fraction(self.multiplier) * Fraction(epsilon) >= 1 - Fraction(1, 2**50)
        yield Finding("multiplier", enough, "scale times epsilon covers the total move of the sums")
        yield Finding("delta", delta == 0, "pure noise needs no delta")

    def fits(self, epsilon: float, delta: float) -> bool:
        """Whether there is no more noise than this promise needs."""
        return self.multiplier == 1.0 / epsilon


class VectorLaplaceComposed(VectorMechanism):
    """Laplace noise by composition over the experts."""

    reasons: ClassVar[tuple[str, ...]] = (
        "one loss moves each sum by a known amount; composed by privacy loss distributions; "
        f"{POST_PROCESSING}",
        "Theorem 'Private, Batched EXP4', by advanced composition over the experts; "
        f"{POST_PROCESSING}",
    )

    name: ClassVar[str] = "vector-laplace-composed"
    sampler: ClassVar[str] = "OpenDP discrete Laplace, i64"

    @property
    def noise(self) -> Calibration:
        """The law with its multiplier."""
        return Calibration("laplace", math.inf, self.multiplier, math.inf, self.experts, 1.0)

    def prove(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough, by dp-accounting."""
        found = composed_laplace_delta(epsilon * (1.0 - SLACK), self.multiplier, self.experts)
        why = (
            f"dp-accounting finds delta {found:.6g} for {self.experts} Laplace mechanisms together"
        )
        yield Finding("epsilon", found <= delta and delta > 0, why)

    def fits(self, epsilon: float, delta: float) -> bool:
        """Whether the noise is the paper's, or less would not be enough."""
        paper = 3.0 * math.sqrt(self.experts * math.log(1.0 / delta)) / epsilon
        less = self.multiplier * (1.0 - 1e-3)
        return (
            math.isclose(self.multiplier, paper, rel_tol=1e-12)
            or composed_laplace_delta(epsilon, less, self.experts) > delta
        )

    @property
    def worst(self) -> float:
        """The paper's noise is as large for every batch."""
        return GRID * self.multiplier

    def one_loss(self, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of one round."""
        return continuous_laplace_loss(self.multiplier, numerics).self_compose(self.experts)


class VectorGaussian(VectorMechanism):
    """Gaussian noise."""

    reasons: ClassVar[tuple[str, ...]] = (
        "one loss moves the sums by a known vector, and the exact curve of the Gaussian mechanism "
        f"has this (epsilon, delta); {POST_PROCESSING}",
    )

    name: ClassVar[str] = "vector-gaussian"
    sampler: ClassVar[str] = "OpenDP discrete Gaussian, i64"

    @property
    def noise(self) -> Calibration:
        """The law with its multiplier."""
        return Calibration("gaussian", math.inf, math.inf, self.multiplier, self.experts, 1.0)

    def prove(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough, by the exact curve and by dp-accounting."""
        found = gaussian_delta(epsilon * (1.0 - SLACK), self.multiplier)
        why = f"the Gaussian mechanism's exact delta is {found:.6g}"
        enough = found <= delta * (1.0 - SLACK)  # noise on integers needs the rest
        yield Finding("epsilon", enough, why)
        if enough and delta >= SMALLEST_COMPOSED:
            numeric = gaussian_loss(self.multiplier).get_delta_for_epsilon(epsilon)
            agrees = bool(numeric <= delta * (1.0 + 1e-3))
            yield Finding("epsilon", agrees, f"dp-accounting finds delta {numeric:.6g}")

    def fits(self, epsilon: float, delta: float) -> bool:
        """Whether there is no more noise than this promise needs."""
        return self.multiplier <= gaussian_multiplier(epsilon, delta) * (1.0 + 1e-9)

    def one_loss(self, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of one round."""
        return gaussian_loss(self.multiplier, numerics)


def mechanism_for(noise: Calibration) -> type[VectorMechanism]:
    """Return the mechanism of a calibrated law."""
    if noise.law == "gaussian":
        return VectorGaussian
    return VectorLaplace if math.isinf(noise.composed) else VectorLaplaceComposed
