"""Experts' sums of a batch: how they are gathered, and the compiled steps of batched EXP4."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Advice, Ticket
from bandanna._core.compiled import once, step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream, discrete_laplace, normal
from bandanna._core.types import JSON, InputError
from bandanna.privacy.calibration import GRID
from bandanna.privacy.release import Metrics, Release, Seeded, Tally, clear, count, publish_batch

LOSS_BITS = UNITS.bit_length() - 1
"""A loss of 1 is two to this power."""

ROUND_UP = 1.0 + 1e-9
"""Norms are summed in floating point; this is more than the rounding errors can be."""


class FastVector(NamedTuple):
    """Numbers for the compiled form."""

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


class EstimateMemory(NamedTuple):
    """A tally of the compiled form."""

    sums: NDArray[np.int64]
    scale: NDArray[np.float64]
    estimates: NDArray[np.float64]
    """What was published for every expert."""


@step
def add_round(
    release: FastVector,
    sums: NDArray[np.int64],
    advice: Advice,
    arm: int,
    importance: float,
    loss: int,
) -> None:
    """Add one round's loss, in units of ``bandanna._core.grid``, to the experts' sums."""
    top = importance * release.top
    half = UNITS >> 1
    if advice.ndim == 1:
        part = (loss * min(int(top + 0.5), GRID) + half) >> LOSS_BITS
        for j in range(sums.size):
            sums[j] += part if advice[j] == arm else 0
    else:
        for j in range(sums.size):
            weight = min(int(top * advice[arm, j] + 0.5), GRID)
            sums[j] += (loss * weight + half) >> LOSS_BITS


@step
def round_scale(
    release: FastVector, experts: int, advice: Advice, arm: int, importance: float
) -> float:
    """Return the scale of noise that hides a round; no loss is needed to know it."""
    top = importance * release.top
    total, squares, largest = 0.0, 0.0, 0.0
    if advice.ndim == 1:
        count = 0
        for j in range(experts):
            count += 1 if advice[j] == arm else 0
        largest = float(min(int(top + 0.5), GRID)) if count > 0 else 0.0
        total = largest * count
        squares = largest * largest * count
    else:
        for j in range(experts):
            size = float(min(int(top * advice[arm, j] + 0.5), GRID))
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
    """Publish a batch's sums with seeded noise: the compiled form, for simulation alone."""
    scale = max(scale, release.least)
    for j in range(sums.size):
        if release.gaussian:
            noise = np.rint(scale * normal(stream))
        else:
            noise = discrete_laplace(stream, scale)
        out[j] = (sums[j] + noise) * release.value


def _clear(memory: EstimateMemory) -> None:
    for j in range(memory.sums.size):
        memory.sums[j] = 0
    memory.scale[0] = 0.0


def _count(
    memory: EstimateMemory,
    release: FastVector,
    advice: Advice,
    arm: int,
    importance: float,
    loss: int,
) -> None:
    scale = round_scale(release, memory.sums.size, advice, arm, importance)
    memory.scale[0] = max(memory.scale[0], scale)
    add_round(release, memory.sums, advice, arm, importance, loss)


def _publish_batch(memory: EstimateMemory, release: FastVector, size: int, stream: Stream) -> float:
    noisy_vector(release, memory.sums, memory.scale[0], stream, memory.estimates)
    return 0.0


clear.register(EstimateMemory, _clear)
count.register(EstimateMemory, _count)
publish_batch.register(EstimateMemory, _publish_batch)


add_round_once, round_scale_once = once(add_round), once(round_scale)
noisy_vector_once = once(noisy_vector)


class VectorTally(Tally):
    """The experts' sums of a batch, and the noise that its rounds ask for."""

    from_rounds = False

    def __init__(self, release: EstimateRelease, experts: int) -> None:
        self._release = release
        self._fast = release.fast()
        self.sums: NDArray[np.int64] | None = np.zeros(experts, dtype=np.int64)
        self.scale = 0.0

    def add(
        self, units: int, ticket: Ticket | None = None, arm: int = 0, metrics: Metrics = None
    ) -> None:
        """Add a loss to the sums of the experts who advised its arm.

        The noise is raised first: interrupted between the two, too much of it is drawn.
        """
        assert self.sums is not None, "this batch has been published"
        assert ticket is not None, "experts' sums need the round's advice"
        self.scale = max(self.scale, round_scale_once(self._fast, self.sums.size, *ticket))
        add_round_once(self._fast, self.sums, *ticket, min(max(units, 0), UNITS))

    def publish(self) -> NDArray[np.float64]:
        """Publish the sums, once."""
        sums, self.sums = self.sums, None
        assert sums is not None, "this batch has been published"
        return self._release.release(sums, self.scale)

    def to_dict(self) -> JSON:
        """Return the sums and the scale."""
        assert self.sums is not None, "this batch has been published"
        return {"sums": self.sums.tolist(), "scale": self.scale}


class EstimateRelease(Release):
    """A release of one estimate for every expert."""

    experts: int

    @abstractmethod
    def release(self, sums: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
        """Publish a batch's sums; ``scale`` is the largest that its rounds asked for."""

    @abstractmethod
    def fast(self) -> FastVector:
        """Return the numbers for the compiled form."""

    def memory(self) -> EstimateMemory:
        """Return a memory with a sum for every expert."""
        sums = np.zeros(self.experts, dtype=np.int64)
        return EstimateMemory(sums, np.zeros(1), np.zeros(self.experts))

    def seeded(self, stream: Stream) -> SeededVectorRelease:
        """Return the same release with repeatable noise, which protects nobody."""
        return SeededVectorRelease(self, stream)

    def start(self, size: int | None = None) -> VectorTally:
        """Open a batch; its size is fixed."""
        if size not in (None, self.batch):
            raise InputError(f"this release has batches of {self.batch}; got {size!r}.")
        return VectorTally(self, self.experts)

    def resume(self, saved: JSON, losses: list[int], size: int) -> VectorTally:
        """Go on with sums and scale, refusing impossible ones."""
        tally = self.start(size)
        sums, scale = np.array(saved["sums"], dtype=np.int64), float(saved["scale"])
        good = (
            set(saved) == {"sums", "scale"}
            and sums.shape == (self.experts,)
            and all(0 <= total <= len(losses) * GRID for total in sums)
            and 0.0 <= scale < math.inf
            and (scale > 0.0 or not sums.any())
        )
        if not good:
            raise ValueError("experts' sums hold impossible values")
        tally.sums, tally.scale = sums, scale
        return tally


class SeededVectorRelease(Seeded[EstimateRelease], EstimateRelease):
    """A vector release with repeatable noise, for tests and simulation: it protects nobody."""

    def __init__(self, release: EstimateRelease, stream: Stream) -> None:
        super().__init__(release, stream)
        self.experts = release.experts

    def release(self, sums: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
        """Publish a batch's sums with seeded noise."""
        out = np.empty(sums.size)
        noisy_vector_once(self.fast(), sums, scale, self.stream, out)
        return out

    def fast(self) -> FastVector:
        """Return the numbers of the release inside."""
        return self._release.fast()
