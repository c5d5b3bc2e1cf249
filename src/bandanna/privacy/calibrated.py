"""Mechanisms whose noise is calibrated: just as much as an epsilon and a delta ask for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

from bandanna._core.types import SMALLEST_DELTA, InputError, Model
from bandanna.privacy.calibration import (
    SLACK,
    SMALLEST_COMPOSED,
    gaussian_delta,
    gaussian_multiplier,
)
from bandanna.privacy.mechanism import Finding, Mechanism, Numerics, PrivacyLoss, gaussian_loss


class CalibratedMechanism(Mechanism):
    """Noise whose multiplier, for a move of size 1, follows from epsilon and delta."""

    multiplier: float

    @property
    def model(self) -> Model:
        """Sums are kept until they are released."""
        return "central"

    @property
    @abstractmethod
    def possible(self) -> dict[str, bool]:
        """Whether a release can have its numbers, by entry."""

    @abstractmethod
    def prove(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough, and no more."""

    @abstractmethod
    def fits(self, epsilon: float, delta: float) -> bool:
        """Whether there is no more noise than this promise needs, so that it is no other's."""

    @abstractmethod
    def check_scales(self, epsilon: float) -> Iterator[Finding]:
        """Check the scales that follow from the multiplier."""

    def check(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough, and no more, on every number."""
        possible = self.possible | {
            "multiplier": 1e-3 <= self.multiplier <= 1e15,
            "delta": delta == 0 or SMALLEST_DELTA <= delta < 1,
        }
        wrong = [entry for entry, good in possible.items() if not good]
        if wrong:
            yield Finding(wrong[0], False, "no release has such a number")
            return
        yield from self.prove(epsilon, delta)
        yield from self.check_scales(epsilon)

    def no_more(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Refuse the noise of another promise."""
        if not self.fits(epsilon, delta):
            yield Finding("multiplier", False, "is not the noise of this epsilon and delta")

    def one_loss(self, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of one round."""
        raise InputError(f"no accounting for mechanism {self.name!r}: its guarantee is pure.")

    def loss(self, epsilon: float, rounds: int, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of so many rounds, released apart."""
        single = self.one_loss(numerics)
        return single if rounds == 1 else single.self_compose(rounds)


class LaplaceNoise(CalibratedMechanism):
    """Pure Laplace noise: its multiplier is one over epsilon."""

    sampler: ClassVar[str] = "OpenDP discrete Laplace, i64"
    covered: ClassVar[str]
    """What the noise covers."""

    def prove(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough, in exact fractions."""
        enough = Fraction(self.multiplier) * Fraction(epsilon) >= 1 - Fraction(1, 2**50)
        yield Finding("multiplier", enough, f"scale times epsilon covers {self.covered}")
        if enough:
            yield from self.no_more(epsilon, delta)
        yield Finding("delta", delta == 0, "pure noise needs no delta")

    def fits(self, epsilon: float, delta: float) -> bool:
        """Whether there is no more noise than this promise needs."""
        return self.multiplier == 1.0 / epsilon


class GaussianNoise(CalibratedMechanism):
    """Gaussian noise: its multiplier is the smallest by the exact curve."""

    sampler: ClassVar[str] = "OpenDP discrete Gaussian, i64"

    def prove(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough, by the exact curve and by dp-accounting."""
        needed = gaussian_delta(epsilon * (1.0 - SLACK), self.multiplier)
        enough = needed <= delta * (1.0 - SLACK)  # noise on integers needs the rest
        yield Finding("epsilon", enough, f"the Gaussian mechanism's exact delta is {needed:.6g}")
        if enough and delta >= SMALLEST_COMPOSED:
            numeric = gaussian_loss(self.multiplier).get_delta_for_epsilon(epsilon)
            agrees = bool(numeric <= delta * (1.0 + 1e-3))
            yield Finding("epsilon", agrees, f"dp-accounting finds delta {numeric:.6g}")
        if enough:
            yield from self.no_more(epsilon, delta)

    def fits(self, epsilon: float, delta: float) -> bool:
        """Whether there is no more noise than this promise needs."""
        return self.multiplier <= gaussian_multiplier(epsilon, delta) * (1.0 + 1e-9)

    def one_loss(self, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of one round."""
        return gaussian_loss(self.multiplier, numerics)
