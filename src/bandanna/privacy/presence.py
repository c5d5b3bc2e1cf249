"""The release of who is in a log at all, with what came of them: one person is added, or removed.

A person whose outcome is y in [0, 1] adds (1 - y)^2, 2 y (1 - y) and y^2 to three sums of their arm
and group. The three are 0 or more and add up to 1, so with or without them the sums differ by 1
together, and Laplace noise of scale 1/epsilon on each costs epsilon in all. On a grid of N units an
outcome k adds floor((N - k)^2 / N), 2 (k - floor(k^2 / N)) and floor(k^2 / N): whole numbers, 0 or
more, that add up to N. Outcomes on smaller grids are tried in ``tests/privacy/test_presence.py``.

How many people there are, their sum and their squares are linear in the three, so that nothing else
is released: no exact count, and sums of arms and groups where nobody is as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.checks import MAX_ROUNDS
from bandanna._core.grid import UNITS
from bandanna._core.types import Guarantee
from bandanna.counted import LARGEST_SQUARE, Counted, Integers
from bandanna.privacy.laplace import laplace_scale
from bandanna.privacy.mechanism import (
    Finding,
    Numerics,
    PrivacyLoss,
    PureMechanism,
    prove_scale,
    worst_loss,
)
from bandanna.privacy.noise import with_noise
from bandanna.privacy.statements import DECLARED, POST_PROCESSING, PRESENCE

Floats = NDArray[np.float64]


class Present(NamedTuple):
    """Noisy numbers of each arm, one column a group, with outcomes in [0, 1]."""

    counts: Floats
    sums: Floats
    squares: Floats
    """Around 1/2."""


def shares_of(counts: Integers, sums: Integers, squares: Integers) -> Integers:
    """Return the three sums of each cell, in grid units, one after the other.

    Examples
    --------
    >>> shares_of(*np.array([[1], [UNITS], [LARGEST_SQUARE]])).ravel().tolist() == [0, 0, UNITS]
    True
    """
    whole = squares + sums - LARGEST_SQUARE * counts
    none = UNITS * counts - 2 * sums + whole
    return np.stack([none, 2 * (sums - whole), whole])


@dataclass(frozen=True)
class PresenceMechanism(PureMechanism):
    """Independent noise of one scale on three sums, to which one person adds 1 together."""

    scale: float

    name: ClassVar[str] = "laplace-presence"
    sampler: ClassVar[str] = "OpenDP discrete Laplace, i64"
    hides_presence: ClassVar[bool] = True
    reasons: ClassVar[tuple[str, ...]] = (
        f"one person who is added or removed moves three sums by {UNITS} together and "
        f"{UNITS}/scale <= epsilon; {POST_PROCESSING}",
    )

    @property
    def sizes(self) -> str:
        """Say how many are released together."""
        return "a log of any size"

    def protected(self, algorithm: str, experts: int | None) -> str:
        """Return what it protects."""
        return PRESENCE

    def assumptions(self) -> tuple[str, ...]:
        """Return what is assumed of arms and groups."""
        return (DECLARED,)

    def prove(self, epsilon: float) -> Iterator[Finding]:
        """Prove the promise in exact arithmetic."""
        why = f"one person moves three sums by {UNITS} together"
        yield Finding("units", self.units == UNITS, why)
        yield Finding("batch", self.batch == MAX_ROUNDS, "how many there are is not told")
        yield from prove_scale(UNITS, epsilon, self.scale)

    def loss(self, epsilon: float, rounds: int, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of any mechanism with this epsilon."""
        return worst_loss(epsilon, rounds=rounds)


@dataclass(frozen=True)
class PresenceRelease:
    """Publish what was counted, with noise in the counts too, once.

    Examples
    --------
    >>> counted = Counted.of_rows(("A", "B"), np.array([0, 1, 1]), np.array([0, 2**20, 2**19]))
    >>> release = PresenceRelease(0.5)
    >>> release.guarantee().epsilon, release.release(counted).counts.shape
    (0.5, (2, 1))
    """

    epsilon: float

    def __post_init__(self) -> None:
        checks.set_fields(self, epsilon=checks.epsilon(self.epsilon))

    @property
    def mechanism(self) -> PresenceMechanism:
        """What the promise rests on."""
        return PresenceMechanism(MAX_ROUNDS, UNITS, laplace_scale(self.epsilon))

    def release(self, counted: Counted) -> Present:
        """Publish the sums of every arm and group, those of nobody as well."""
        squares = counted.squares
        exact = shares_of(
            counted.counts,
            counted.sums,
            LARGEST_SQUARE * counted.counts if squares is None else squares,
        )
        noisy = with_noise(exact.ravel().tolist(), laplace_scale(self.epsilon))
        none, half, whole = np.array(noisy).reshape(exact.shape) / UNITS
        return Present(none + half + whole, half / 2.0 + whole, (none - half + whole) / 4.0)

    def guarantee(self) -> Guarantee:
        """Return the exact promise."""
        law = self.mechanism
        words = (
            f"discrete Laplace noise of scale {law.scale!r} on three sums of each arm, from "
            f"which counts, sums and squares follow, in units of 1/{UNITS}"
        )
        return law.promise(self.epsilon, words)
