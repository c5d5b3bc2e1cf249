"""Releases of one number for each expert: exact noise on a batch's vector of sums.

The mechanisms are pure Laplace, Gaussian and the shared-norm noise of calibration; each knows its
exact check, its privacy loss and its entries in a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import MAX_EXPERTS
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.privacy.calibrated import CalibratedMechanism, GaussianNoise, LaplaceNoise
from bandanna.privacy.calibration import (
    GRID,
    MAX_BATCH,
    SLACK,
    Calibration,
    Law,
    calibrate,
    composed_laplace_delta,
    paper_noise,
)
from bandanna.privacy.mechanism import (
    Finding,
    Numerics,
    PrivacyLoss,
    continuous_laplace_loss,
)
from bandanna.privacy.noise import with_noise
from bandanna.privacy.statements import POST_PROCESSING, PUBLIC_ADVICE
from bandanna.privacy.vector_sums import EstimateRelease, FastVector


@dataclass(frozen=True)
class VectorMechanism(CalibratedMechanism):
    """Independent noise on each expert's sum, in proportion to what one loss can move."""

    experts: int
    multiplier: float
    """Noise per unit of the largest total move, single move or length of a move."""
    least: float
    """Smallest scale of noise, whatever the batch."""

    law: ClassVar[Law]
    measure: ClassVar[str]
    """What the multiplier is for, as ``Calibration`` names it."""

    @property
    def noise(self) -> Calibration:
        """The law with its multiplier."""
        pure, composed, gaussian = (
            self.multiplier if name == self.measure else math.inf
            for name in ("pure", "composed", "gaussian")
        )
        return Calibration(self.law, pure, composed, gaussian, self.experts, 1.0)

    @property
    def possible(self) -> dict[str, bool]:
        """Whether a release can have its numbers, by entry."""
        return {
            "units": self.units == GRID,
            "batch": self.batch <= MAX_BATCH,
            "experts": self.experts <= MAX_EXPERTS,
        }

    def check_scales(self, epsilon: float) -> Iterator[Finding]:
        """Check that the grid is fine enough for the noise."""
        floor = self.noise._replace(epsilon=epsilon).least
        enough = self.least in (floor, max(floor, self.worst))
        yield Finding("least", enough, "the noise is coarse enough against the grid")

    @property
    def worst(self) -> float:
        """The scale for the largest move there could be, where all batches get that."""
        return 0.0


class VectorLaplace(LaplaceNoise, VectorMechanism):
    """Pure Laplace noise."""

    reasons: ClassVar[tuple[str, ...]] = (
        "one loss moves the sums by a known vector whose total is at most epsilon scales; "
        f"{POST_PROCESSING}",
    )

    name: ClassVar[str] = "vector-laplace"
    covered: ClassVar[str] = "the total move of the sums"
    law: ClassVar[Law] = "laplace"
    measure: ClassVar[str] = "pure"


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
    law: ClassVar[Law] = "laplace"
    measure: ClassVar[str] = "composed"

    def prove(self, epsilon: float, delta: float) -> Iterator[Finding]:
        """Show that there is noise enough, by dp-accounting."""
        needed = composed_laplace_delta(epsilon * (1.0 - SLACK), self.multiplier, self.experts)
        why = (
            f"dp-accounting finds delta {needed:.6g} for {self.experts} Laplace mechanisms together"
        )
        enough = needed <= delta and delta > 0
        yield Finding("epsilon", enough, why)
        if enough:
            yield from self.no_more(epsilon, delta)

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


class VectorGaussian(GaussianNoise, VectorMechanism):
    """Gaussian noise."""

    reasons: ClassVar[tuple[str, ...]] = (
        "one loss moves the sums by a known vector, and the exact curve of the Gaussian mechanism "
        f"has this (epsilon, delta); {POST_PROCESSING}",
    )

    name: ClassVar[str] = "vector-gaussian"
    law: ClassVar[Law] = "gaussian"
    measure: ClassVar[str] = "gaussian"


def mechanism_for(noise: Calibration) -> type[VectorMechanism]:
    """Return the mechanism of a calibrated law."""
    if noise.law == "gaussian":
        return VectorGaussian
    return VectorLaplace if math.isinf(noise.composed) else VectorLaplaceComposed


Preset = Literal["calibrated", "paper"]


@dataclass(frozen=True)
class VectorRelease(EstimateRelease):
    """Publish every expert's estimated mean loss over a batch.

    Parameters
    ----------
    epsilon, delta
        The privacy parameters; with delta 0 the noise is pure Laplace noise.
    experts, arms
        N and K.
    batch
        Rounds in a batch.
    mixing
        The gamma of batched EXP4, above 0 and at most 1: no action is rarer than gamma/K.
    preset
        ``calibrated``: the law with the smallest noise, as much as the actions really played ask
        for. ``paper``: Laplace noise of scale ``3 K sqrt(N log(1/delta)) / (gamma tau eps)``.
    """

    epsilon: float
    delta: float
    experts: int
    arms: int
    batch: int
    mixing: float
    preset: Preset = "calibrated"
    noise: Calibration = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "vector"
    mechanisms: ClassVar = (VectorLaplace, VectorLaplaceComposed, VectorGaussian)

    def __post_init__(self) -> None:
        epsilon, delta = checks.epsilon(self.epsilon), checks.delta(self.delta)
        experts = checks.whole("experts", self.experts, at_least=1, at_most=MAX_EXPERTS)
        batch = checks.whole("batch", self.batch, at_least=1, at_most=MAX_BATCH)
        checks.positive("mixing", self.mixing)
        checks.within("mixing", self.mixing, 0.0, 1.0)
        checks.set_fields(self, epsilon=epsilon, delta=delta, experts=experts, batch=batch)
        checks.set_fields(self, arms=checks.arms(self.arms), mixing=float(self.mixing))
        if self.preset not in ("calibrated", "paper"):
            raise InputError(f"preset must be calibrated or paper; got {self.preset!r}.")
        paper = self.preset == "paper"
        noise = paper_noise(epsilon, delta, experts) if paper else None
        checks.set_fields(self, noise=noise or calibrate(epsilon, delta, experts))

    def release(self, sums: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
        """Publish a batch's sums. Call it once for each batch.

        ``scale`` is the largest of what ``add_round`` returned for the batch's rounds.
        """
        fast = self.fast()
        clamped = np.clip(sums, 0, self.batch * GRID).tolist()
        noisy = with_noise(clamped, max(float(scale), fast.least), gaussian=fast.gaussian)
        return np.array(noisy, dtype=np.float64) * fast.value

    def suits(self, experts: int, arms: int, mixing: float) -> bool:
        """Its numbers are for one size of problem and one mixing."""
        return (experts, arms, mixing) == (self.experts, self.arms, self.mixing)

    def guarantee(self) -> Guarantee:
        """Return the promise and its reason."""
        kind = mechanism_for(self.noise)
        multiplier, least = self.noise.multiplier, self.fast().least
        law = "Gaussian" if self.noise.law == "gaussian" else "Laplace"
        mechanism = kind(self.batch, GRID, self.experts, multiplier, least)
        words = (
            f"discrete {law} noise on {self.experts} sums over batches of {self.batch}, "
            f"{self._how_much()}"
        )
        delta = 0.0 if kind is VectorLaplace else self.delta
        promise = mechanism.promise(self.epsilon, words, delta=delta).assuming(PUBLIC_ADVICE)
        return replace(promise, because=kind.reasons[-1 if self.preset == "paper" else 0])

    def _how_much(self) -> str:
        if self.preset == "paper":
            return f"of scale {self.noise.composed:g} times the largest possible move of a sum"
        if self.noise.law == "gaussian":
            return f"of deviation {self.noise.gaussian:g} times the longest move of the batch"
        if math.isinf(self.noise.composed):
            return f"of scale {self.noise.pure:g} times the largest total move of the batch"
        return f"of scale {self.noise.composed:g} times the largest move of a sum in the batch"

    def fast(self) -> FastVector:
        """Return the numbers for the compiled form."""
        worst = GRID * self.noise.composed if self.preset == "paper" else 0.0
        least = max(self.noise.least, worst)
        return FastVector(
            gaussian=self.noise.law == "gaussian",
            top=GRID * self.mixing / self.arms,
            value=self.arms / (self.mixing * GRID * self.batch),
            per_total=self.noise.pure,
            per_entry=self.noise.composed,
            per_length=self.noise.gaussian,
            least=least,
        )

    def to_dict(self) -> JSON:
        """Name and parameters."""
        keys = ("epsilon", "delta", "experts", "arms", "batch", "mixing", "preset")
        return {"name": self.name, **{key: getattr(self, key) for key in keys}}
