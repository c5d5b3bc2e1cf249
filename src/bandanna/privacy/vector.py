"""The release of batched EXP4: one noisy number for every expert.

A batch's sums are integers. In a round whose action was drawn with probability q, expert j counts
a loss x with weight ``w_j = round(GRID * (gamma/K) * share_j / q)``, a whole number from 0 to
GRID that depends on advice and action alone, both public; its sum grows by ``round(x w_j)``. So
one loss, whatever it is, moves the sums by at most ``(w_1, ..., w_N)``, and the noise need only
be as large as the largest such vector of the batch asks for. What is added are whole numbers, and
the noise is drawn exactly: no floating point touches private data.

``docs/theory/batched-exp4.md`` has the proofs, of privacy and of regret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna import checks
from bandanna.advice import MAX_EXPERTS, Advice
from bandanna.compiled import kernel, step
from bandanna.grid import UNITS
from bandanna.privacy.calibration import (
    GRID,
    MAX_BATCH,
    Calibration,
    calibrate,
    paper_noise,
)
from bandanna.privacy.noise import gaussian_vector, laplace_vector
from bandanna.privacy.release import POST_PROCESSING, PROTECTED, Seeded
from bandanna.streams import Stream, discrete_laplace, normal
from bandanna.types import JSON, Guarantee, InputError

FARTHEST = 2**62
"""Noisy sums are cut off here; exact sums are below half of it."""

LOSS_BITS = UNITS.bit_length() - 1
"""A loss of 1 is two to this power."""

ROUND_UP = 1.0 + 1e-9
"""Norms are summed in floating point; this is more than the rounding errors can be."""

PUBLIC_ADVICE = (
    "experts' advice is public: each action shows something of the advice it was drawn from, and "
    "the advice of a round does not depend on feedback that was not released"
)

PURE, COMPOSED, NORMAL = "vector-laplace", "vector-laplace-composed", "vector-gaussian"
"""Mechanisms, by the name they have in certificates."""

SAMPLERS = {
    PURE: "OpenDP discrete Laplace, i64",
    COMPOSED: "OpenDP discrete Laplace, i64",
    NORMAL: "OpenDP discrete Gaussian, i64",
}

Preset = Literal["calibrated", "paper"]


def mechanism_of(noise: Calibration) -> str:
    """Return the mechanism's name."""
    if noise.law == "gaussian":
        return NORMAL
    return PURE if math.isinf(noise.composed) else COMPOSED


class FastVector(NamedTuple):
    """Numbers for the compiled face."""

    gaussian: bool
    top: float
    """Weight of one over the probability of an action, before it is rounded."""
    value: float
    """What one unit of a released sum is worth in an expert's mean loss."""
    per_total: float
    per_entry: float
    per_length: float
    least: float
    """Smallest scale of noise, whatever the batch."""


@dataclass(frozen=True)
class VectorRelease:
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
        # The sampler saturates at the ends of 64-bit integers, where adding a sum would show it;
        # cut off well before, everything beyond is one value, whatever the sum.
        noisy = [
            min(max(total + extra, -FARTHEST), FARTHEST)
            for total, extra in zip(clamped, noise, strict=True)
        ]
        return np.array(noisy, dtype=np.float64) * fast.value

    def guarantee(self) -> Guarantee:
        """Return the promise and its reason."""
        kind = mechanism_of(self.noise)
        law = "Gaussian" if self.noise.law == "gaussian" else "Laplace"
        facts: JSON = {
            "mechanism": kind,
            "batch": self.batch,
            "units": GRID,
            "experts": self.experts,
            "multiplier": self.noise.multiplier,
            "least": self.fast().least,
            "sampler": SAMPLERS[kind],
        }
        return Guarantee(
            epsilon=self.epsilon,
            delta=self.delta if kind != PURE else 0.0,
            protects=PROTECTED,
            model="central",
            mechanism=f"discrete {law} noise on {self.experts} sums over batches of {self.batch}, "
            f"{self._how_much()}",
            because=f"{self._reason()}; {POST_PROCESSING}",
            assumptions=(PUBLIC_ADVICE,),
            facts=facts,
        )

    def _how_much(self) -> str:
        if self.preset == "paper":
            return f"of scale {self.noise.composed:g} times the largest possible move of a sum"
        if self.noise.law == "gaussian":
            return f"of deviation {self.noise.gaussian:g} times the longest move of the batch"
        if math.isinf(self.noise.composed):
            return f"of scale {self.noise.pure:g} times the largest total move of the batch"
        return f"of scale {self.noise.composed:g} times the largest move of a sum in the batch"

    def _reason(self) -> str:
        if self.preset == "paper":
            return "Theorem 'Private, Batched EXP4', by advanced composition over the experts"
        if self.noise.law == "gaussian":
            return (
                "one loss moves the sums by a known vector, and the exact curve of the Gaussian "
                "mechanism has this (epsilon, delta)"
            )
        if math.isinf(self.noise.composed):
            return "one loss moves the sums by a known vector whose total is at most epsilon scales"
        return "one loss moves each sum by a known amount; composed by privacy loss distributions"

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


@step
def add_round(
    release: FastVector,
    sums: NDArray[np.int64],
    advice: Advice,
    arm: int,
    importance: float,
    loss: int,
) -> float:
    """Add one round's loss, in units of ``bandanna.grid``, to the experts' sums.

    Returns the scale of noise that hides this round; it does not depend on the loss.
    """
    top = importance * release.top
    half = UNITS >> 1
    total, squares, largest = 0.0, 0.0, 0.0
    if advice.ndim == 1:
        weight = min(int(top + 0.5), GRID)
        part = (loss * weight + half) >> LOSS_BITS
        count = 0
        for j in range(sums.size):
            says_so = advice[j] == arm
            sums[j] += part if says_so else 0
            count += 1 if says_so else 0
        largest = float(weight) if count > 0 else 0.0
        total = largest * count
        squares = largest * largest * count
    else:
        for j in range(sums.size):
            weight = min(int(top * advice[arm, j] + 0.5), GRID)
            sums[j] += (loss * weight + half) >> LOSS_BITS
            size = float(weight)
            total += size
            squares += size * size
            largest = max(largest, size)
    if release.gaussian:
        return ROUND_UP * release.per_length * math.sqrt(squares)
    if largest == 0.0:
        return 0.0
    return ROUND_UP * min(release.per_total * total, release.per_entry * largest)


@step
def noisy_vector(
    release: FastVector,
    sums: NDArray[np.int64],
    scale: float,
    stream: Stream,
    out: NDArray[np.float64],
) -> None:
    """Publish a batch's sums with seeded noise: the compiled face, for simulation alone."""
    scale = max(scale, release.least)
    for j in range(sums.size):
        if release.gaussian:
            noise = np.rint(scale * normal(stream))
        else:
            noise = discrete_laplace(stream, scale)
        out[j] = (sums[j] + noise) * release.value


@kernel
def add_round_once(
    release: FastVector,
    sums: NDArray[np.int64],
    advice: Advice,
    arm: int,
    importance: float,
    loss: int,
) -> float:
    """Add one round, from Python."""
    return add_round(release, sums, advice, arm, importance, loss)


@kernel
def noisy_vector_once(
    release: FastVector,
    sums: NDArray[np.int64],
    scale: float,
    stream: Stream,
    out: NDArray[np.float64],
) -> None:
    """Publish one batch with seeded noise, from Python."""
    noisy_vector(release, sums, scale, stream, out)


class SeededVectorRelease(Seeded):
    """A vector release with repeatable noise, for tests and simulation: it protects nobody."""

    def release(self, sums: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
        """Publish a batch's sums with seeded noise."""
        out = np.empty(sums.size)
        noisy_vector_once(self._fast, sums, scale, self._stream, out)
        return out
