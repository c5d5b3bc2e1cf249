"""The release of batched EXP4: one noisy number for every expert.

A batch's sums are integers. One loss, whatever it is, moves them by at most the weights
``(w_1, ..., w_N)`` of its round (``bandanna.privacy.estimates``), which are public, so the noise
need only be as large as the largest such vector of the batch asks for. What is added are whole
numbers, and the noise is drawn exactly: no floating point touches private data.

``docs/theory/batched-exp4.md`` has the proofs, of privacy and of regret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import MAX_EXPERTS
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.privacy.calibration import (
    GRID,
    MAX_BATCH,
    Calibration,
    calibrate,
    paper_noise,
)
from bandanna.privacy.estimate_steps import FastVector
from bandanna.privacy.estimates import EstimateRelease
from bandanna.privacy.noise import gaussian_vector, laplace_vector, within_reach
from bandanna.privacy.statements import PROTECTED, PUBLIC_ADVICE
from bandanna.privacy.vector_mechanisms import (
    VectorGaussian,
    VectorLaplace,
    VectorLaplaceComposed,
    mechanism_for,
)

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
        checks.settle(self, epsilon=epsilon, delta=delta, experts=experts, batch=batch)
        checks.settle(self, arms=checks.arms(self.arms), mixing=float(self.mixing))
        if self.preset not in ("calibrated", "paper"):
            raise InputError(f"preset must be calibrated or paper; got {self.preset!r}.")
        paper = self.preset == "paper"
        noise = paper_noise(epsilon, delta, experts) if paper else None
        checks.settle(self, noise=noise or calibrate(epsilon, delta, experts))

    def release(self, sums: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
        """Publish a batch's sums. Call it once for each batch.

        ``scale`` is the largest of what ``add_round`` returned for the batch's rounds.
        """
        fast = self.fast()
        draw = gaussian_vector if fast.gaussian else laplace_vector
        noise = draw(max(float(scale), fast.least), self.experts)
        most = self.batch * GRID
        clamped = [min(max(int(total), 0), most) for total in sums]
        noisy = [within_reach(total + extra) for total, extra in zip(clamped, noise, strict=True)]
        return np.array(noisy, dtype=np.float64) * fast.value

    def suits(self, experts: int, arms: int, mixing: float) -> bool:
        """Its numbers are for one size of problem and one mixing."""
        return (experts, arms, mixing) == (self.experts, self.arms, self.mixing)

    def guarantee(self) -> Guarantee:
        """Return the promise and its reason."""
        kind = mechanism_for(self.noise)
        multiplier, least = self.noise.multiplier, self.fast().least
        law = "Gaussian" if self.noise.law == "gaussian" else "Laplace"
        return Guarantee(
            epsilon=self.epsilon,
            delta=self.delta if kind is not VectorLaplace else 0.0,
            protects=PROTECTED,
            model="central",
            mechanism=f"discrete {law} noise on {self.experts} sums over batches of {self.batch}, "
            f"{self._how_much()}",
            because=kind.reasons[-1 if self.preset == "paper" else 0],
            assumptions=(PUBLIC_ADVICE,),
            facts=kind(self.batch, GRID, self.experts, multiplier, least).facts(),
        )

    def _how_much(self) -> str:
        if self.preset == "paper":
            return f"of scale {self.noise.composed:g} times the largest possible move of a sum"
        if self.noise.law == "gaussian":
            return f"of deviation {self.noise.gaussian:g} times the longest move of the batch"
        if math.isinf(self.noise.composed):
            return f"of scale {self.noise.pure:g} times the largest total move of the batch"
        return f"of scale {self.noise.composed:g} times the largest move of a sum in the batch"

    def fast(self) -> FastVector:
        """Return the numbers for the compiled face."""
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
