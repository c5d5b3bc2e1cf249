"""The release of a sum and of the squares beside it, for what the sum alone costs.

An outcome y in [0, 1] is in two sums, of y and of (y - 1/2)^2. If it becomes y', d = |y - y'|
away, the two move together by d (1 + |y + y' - 1|) <= d (2 - d) <= 1, because |y + y' - 1| is at
most 1 - d. So Laplace noise of scale 1/epsilon on *both* costs epsilon in all. On a grid of N units
and with squares rounded down, k and k' that are d apart move them by d (2 N - d) / N before
rounding, which is at most N. Rounding changes a difference by less than 1, and the whole move is a
whole number: so it is at most N too. Every pair on smaller grids is tried in
``tests/privacy/test_moments.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bandanna._core import checks
from bandanna._core.grid import UNITS
from bandanna._core.types import Guarantee
from bandanna.counted import LARGEST_SQUARE
from bandanna.privacy.laplace import MomentsMechanism, laplace_scale
from bandanna.privacy.noise import with_noise


class ReleasedSums(NamedTuple):
    """A released sum and sum of squares around the middle, in grid units."""

    total: int
    square: int


@dataclass(frozen=True)
class MomentsRelease:
    """Publish sums with the squares beside them, each once.

    Examples
    --------
    >>> release = MomentsRelease(0.5, longest=1000)
    >>> release.guarantee().epsilon, isinstance(release.release(5, 3, 10), ReleasedSums)
    (0.5, True)
    """

    epsilon: float
    longest: int

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            epsilon=checks.epsilon(self.epsilon),
            longest=checks.whole("longest", self.longest, at_least=2),
        )

    @property
    def mechanism(self) -> MomentsMechanism:
        """What the promise rests on."""
        return MomentsMechanism(self.longest, UNITS, laplace_scale(self.epsilon))

    def release(self, total: int, square: int, size: int) -> ReleasedSums:
        """Publish the sums of ``size`` outcomes, in grid units, with fresh noise."""
        total = min(max(total, 0), size * UNITS)
        square = min(max(square, 0), size * LARGEST_SQUARE)
        return ReleasedSums(*with_noise((total, square), laplace_scale(self.epsilon)))

    def guarantee(self) -> Guarantee:
        """Return the exact promise."""
        law = self.mechanism
        words = (
            f"discrete Laplace noise of scale {law.scale!r} on each sum and on the squares "
            f"beside it, in units of 1/{UNITS}"
        )
        return law.promise(self.epsilon, words)
