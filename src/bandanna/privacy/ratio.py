"""The release of two sums whose ratio is asked for, with all that an interval of it needs.

A unit has two outcomes, y and x in [0, 1]. It is in five sums: of y, (y - 1/2)^2, x, (x - 1/2)^2
and (y - 1/2)(x - 1/2). If they become y' and x', a = |y - y'| and b = |x - x'| away, the first pair
moves by a (2 - a) at most and the second by b (2 - b) (``bandanna.privacy.moments``). The midpoint
of y and y' is at most (1 - a)/2 from 1/2, so the product moves by b (1 - a)/2 + a (1 - b)/2 at
most. Together that is 5 (a + b)/2 - a^2 - b^2 - a b, which is largest at a = b = 5/6: 25/12. So
the product, without which no covariance is known, costs a twenty-fifth more than two pairs.

On a grid of N units squares and products are rounded down. Three differences of rounded numbers
change by less than 1 each, and the whole move is a whole number: at most 25 N // 12 + 3. Every pair
on smaller grids is tried in ``tests/privacy/test_ratio.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bandanna._core import checks
from bandanna._core.grid import UNITS, LossRange, check_range
from bandanna._core.types import JSON, Guarantee, plain
from bandanna.counted import LARGEST_SQUARE
from bandanna.privacy.mechanism import (
    Finding,
    Numerics,
    PrivacyLoss,
    PureMechanism,
    is_range,
    least_scale,
    prove_scale,
    worst_loss,
)
from bandanna.privacy.noise import with_noise
from bandanna.privacy.statements import POST_PROCESSING


def farthest(grid: int) -> int:
    """Return how far one unit moves the five sums together, on a grid.

    Examples
    --------
    >>> farthest(12)
    28
    """
    return 25 * grid // 12 + 3


MOST = farthest(UNITS)


class RatioSums(NamedTuple):
    """Five sums in grid units: of two outcomes, of their squares, and of their product."""

    top: int
    top_square: int
    bottom: int
    bottom_square: int
    product: int


def ratio_scale(epsilon: float) -> float:
    """Return the smallest scale that costs epsilon at most."""
    return least_scale(MOST, epsilon)


def ratio_range(low: float, high: float) -> str:
    """Return the sentence about the range of what is divided by."""
    return (
        f"what outcomes are divided by is from {plain(low)} to {plain(high)}, a range fixed "
        f"without looking at it; what is outside is moved to its nearer end"
    )


@dataclass(frozen=True)
class RatioMechanism(PureMechanism):
    """Independent noise of one scale on five sums."""

    scale: float
    bottom: list[float]
    """The range of what is divided by."""

    name: ClassVar[str] = "laplace-ratio"
    sampler: ClassVar[str] = "OpenDP discrete Laplace, i64"
    reasons: ClassVar[tuple[str, ...]] = (
        f"one unit moves two sums, the squares beside them and the sum of products by at most "
        f"{MOST} together and {MOST}/scale <= epsilon; {POST_PROCESSING}",
    )

    def assumptions(self) -> tuple[str, ...]:
        """Return what is assumed of the range of what is divided by."""
        return (ratio_range(*self.bottom),)

    def prove(self, epsilon: float) -> Iterator[Finding]:
        """Prove the promise in exact arithmetic."""
        yield Finding("units", self.units == MOST, f"one unit moves five sums by at most {MOST}")
        yield from prove_scale(MOST, epsilon, self.scale)

    def loss(self, epsilon: float, rounds: int, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution of any mechanism with this epsilon."""
        return worst_loss(epsilon, rounds=rounds)

    @classmethod
    def impossible(cls, facts: JSON) -> Iterator[Finding]:
        """Entries must have their types before anything is computed from them."""
        yield from super().impossible(facts)
        if not is_range(facts.get("bottom")):
            yield Finding("bottom", False, "must be two numbers, the smaller one first")


@dataclass(frozen=True)
class RatioRelease:
    """Publish the five sums of each arm, once.

    Examples
    --------
    >>> release = RatioRelease(0.5, longest=1000, bottom=(0.0, 20.0))
    >>> release.guarantee().epsilon, isinstance(release.release(RatioSums(5, 3, 4, 2, 1), 10),
    ...                                         RatioSums)
    (0.5, True)
    """

    epsilon: float
    longest: int
    bottom: LossRange

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            epsilon=checks.epsilon(self.epsilon),
            longest=checks.whole("longest", self.longest, at_least=2),
            bottom=check_range(self.bottom),
        )

    @property
    def mechanism(self) -> RatioMechanism:
        """What the promise rests on."""
        return RatioMechanism(self.longest, MOST, ratio_scale(self.epsilon), list(self.bottom))

    def release(self, sums: RatioSums, size: int) -> RatioSums:
        """Publish the sums of ``size`` units, in grid units, with fresh noise."""
        whole, square = size * UNITS, size * LARGEST_SQUARE
        ends = ((0, whole), (0, square), (0, whole), (0, square), (-square, square))
        inside = (min(max(one, low), high) for one, (low, high) in zip(sums, ends, strict=True))
        return RatioSums(*with_noise(inside, ratio_scale(self.epsilon)))

    def guarantee(self) -> Guarantee:
        """Return the exact promise."""
        law = self.mechanism
        words = (
            f"discrete Laplace noise of scale {law.scale!r} on each of two sums, on the "
            f"squares beside them and on the sum of products, in units of 1/{UNITS}"
        )
        return law.promise(self.epsilon, words)
