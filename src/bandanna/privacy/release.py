"""What a release is: the one door through which private losses leave, once for each batch.

A release takes a batch's sum in grid units and returns one number. It has two faces:

- ``release(total)`` is exact: integers, and randomness from the operating system that cannot be
  seeded, forked or replayed. Decisions about people use it.
- ``fast()`` gives the numbers for ``noisy_value``, compiled and seeded, for simulation alone.
  ``SeededRelease`` wraps it; its guarantee says that epsilon is infinite.

Both have the same distribution; ``tests/privacy/test_faces.py`` shows it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna import checks
from bandanna.compiled import kernel, step
from bandanna.grid import UNITS
from bandanna.streams import Stream, discrete_laplace, uniform
from bandanna.types import JSON, Guarantee, no_guarantee

PLAIN, ONE_BIT, LAPLACE = 0, 1, 2

POST_PROCESSING = "batches are disjoint and the rest is post-processing (Lemma 'Privacy guarantee')"
PROTECTED = "the feedback of any one round, against everyone who sees all decisions and releases"
PROTECTED_WITH_EXPERTS = (
    f"{PROTECTED}; against those who see only which experts were followed, also the advice of any "
    f"one round (the actions do show advice)"
)


class FastRelease(NamedTuple):
    """Numbers for the compiled face of any release."""

    kind: int
    unit: float
    """What one grid unit of the sum is worth in the released mean."""
    base: float
    """One-bit: probability of a 1 when the sum is 0."""
    slope: float
    """One-bit: what each grid unit adds to it."""
    scale: float
    """Laplace: scale of the noise in grid units."""


class Release(ABC):
    """A way to publish the mean loss of a batch; subclasses are frozen dataclasses.

    The sum handed over is clamped to ``[0, batch * UNITS]`` whatever the caller does.
    """

    name: ClassVar[str]
    batch: int

    @abstractmethod
    def release(self, total: int) -> float:
        """Publish a batch's sum, given in grid units. Call it once for each batch."""

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Return what this release promises for one round's loss."""

    @abstractmethod
    def fast(self) -> FastRelease:
        """Return the numbers for the compiled face."""

    @abstractmethod
    def to_dict(self) -> JSON:
        """Name and parameters, enough to make the release again."""


@dataclass(frozen=True)
class PureRelease(Release):
    """What releases with a pure epsilon have in common."""

    epsilon: float
    batch: int

    def __post_init__(self) -> None:
        batch = checks.whole("batch", self.batch, at_least=1)
        checks.settle(self, epsilon=checks.epsilon(self.epsilon), batch=batch)

    def clamped(self, total: int) -> int:
        """Return the sum, forced into the range of a batch of honest losses."""
        return min(max(total, 0), self.batch * UNITS)

    def promise(
        self,
        mechanism: str,
        because: str,
        facts: JSON,
        curve: Callable[[float], float],
    ) -> Guarantee:
        """Return the guarantee of a mechanism that is proved to have this epsilon."""
        return Guarantee(
            epsilon=self.epsilon,
            delta=0.0,
            protects=PROTECTED,
            model="local" if self.batch == 1 else "central",
            mechanism=mechanism,
            because=f"{because}; {POST_PROCESSING}",
            facts={"mechanism": self.name, "batch": self.batch, "units": UNITS, **facts},
            curve=curve,
        )

    def to_dict(self) -> JSON:
        """Name and parameters."""
        return {"name": self.name, "epsilon": self.epsilon, "batch": self.batch}


@step
def noisy_value(release: FastRelease, total: int, stream: Stream) -> float:
    """Publish a batch's sum with seeded noise: the compiled face of every release."""
    if release.kind == ONE_BIT:
        return 1.0 if uniform(stream) < release.base + release.slope * total else 0.0
    if release.kind == LAPLACE:
        return (total + discrete_laplace(stream, release.scale)) * release.unit
    return total * release.unit


@kernel
def noisy_value_once(release: FastRelease, total: int, stream: Stream) -> float:
    """Publish one sum with seeded noise, from Python."""
    return noisy_value(release, total, stream)


@kernel
def _fill_noisy_values(
    release: FastRelease, total: int, stream: Stream, out: NDArray[np.float64]
) -> None:
    for i in range(out.size):
        out[i] = noisy_value(release, total, stream)


def noisy_values(
    release: FastRelease, total: int, count: int, stream: Stream
) -> NDArray[np.float64]:
    """Publish the same sum many times with seeded noise, for audits and tests."""
    values = np.empty(count)
    _fill_noisy_values(release, total, stream, values)
    return values


class Seeded:
    """What releases with repeatable noise have in common: they protect nobody."""

    def __init__(self, release: Any, stream: Stream) -> None:
        self._release = release
        self._fast = release.fast()
        self._stream = stream
        self.batch: int = release.batch

    def guarantee(self) -> Guarantee:
        """Return that nothing is promised."""
        return no_guarantee(
            f"{self._release.name} release with seeded noise",
            "whoever knows the seed can subtract the noise; for tests and simulation alone",
        )

    def fast(self) -> Any:
        """Return the numbers of the release inside."""
        return self._fast

    def to_dict(self) -> JSON:
        """Refuse: release randomness is never saved."""
        raise TypeError("a seeded release is for simulation and cannot be saved")


class SeededRelease(Seeded, Release):
    """A release with repeatable noise, for tests and simulation: it protects nobody."""

    name = "seeded"

    def release(self, total: int) -> float:
        """Publish a batch's sum with seeded noise."""
        return noisy_value_once(self._fast, total, self._stream)
