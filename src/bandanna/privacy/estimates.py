"""Experts' sums on their way out: the tally of batched EXP4."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Ticket
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream
from bandanna._core.types import JSON, InputError
from bandanna.privacy.calibration import GRID
from bandanna.privacy.estimate_steps import (
    EstimateMemory,
    FastVector,
    add_round_once,
    noisy_vector_once,
    round_scale_once,
)
from bandanna.privacy.release import Release, Seeded, Tally


class VectorTally(Tally):
    """The experts' sums of a batch, and the noise that its rounds ask for."""

    def __init__(self, release: EstimateRelease, experts: int) -> None:
        self._release = release
        self._fast = release.fast()
        self.sums: NDArray[np.int64] | None = np.zeros(experts, dtype=np.int64)
        self.scale = 0.0

    def add(self, units: int, ticket: Ticket | None = None) -> None:
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
        """Return the numbers for the compiled face."""

    def memory(self) -> EstimateMemory:
        """Return room for every expert's sum."""
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

    def suits(self, experts: int, arms: int, mixing: float) -> bool:
        """Ask the release inside."""
        return self._release.suits(experts, arms, mixing)

    def release(self, sums: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
        """Publish a batch's sums with seeded noise."""
        out = np.empty(sums.size)
        noisy_vector_once(self._release.fast(), sums, scale, self._stream, out)
        return out

    def fast(self) -> FastVector:
        """Return the numbers of the release inside."""
        return self._release.fast()
