"""The Laplace release of the paper, on integers.

A batch's sum S is an integer that one loss moves by at most M = ``UNITS``. Adding an integer drawn
with probability proportional to ``exp(-|z| / scale)`` with ``scale >= M / epsilon`` makes any two
neighbouring sums indistinguishable up to ``exp(M / scale) <= exp(epsilon)``. Divided by
``batch * M`` it is the batch's mean plus noise of scale ``1 / (batch * epsilon)``, as in the
paper's Algorithm 1, but no floating-point noise is ever added to private data: the low bits of
such noise give the data away.

The noise is exact and fed by the operating system: see ``bandanna.privacy.noise``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream, discrete_laplace
from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.inference import Law, Totals, law_of
from bandanna.privacy.composition import laplace_group
from bandanna.privacy.mechanism import (
    BinnedLaw,
    Finding,
    Mechanism,
    Numerics,
    PrivacyLoss,
    PureMechanism,
    continuous_laplace_loss,
    least_scale,
    on_the_grid,
    prove_scale,
)
from bandanna.privacy.noise import discrete_laplace_noise, within_reach
from bandanna.privacy.release import ArmTotals, Tally, publish
from bandanna.privacy.statements import POST_PROCESSING
from bandanna.privacy.sums import PureRelease


def laplace_scale(epsilon: float) -> float:
    """Return the scale of noise on sums that one loss moves by ``UNITS`` at most."""
    return least_scale(UNITS, epsilon)


@dataclass(frozen=True)
class LaplaceMechanism(PureMechanism):
    """A batch's sum plus an integer z of probability proportional to ``exp(-|z| / scale)``."""

    scale: float

    name: ClassVar[str] = "laplace"
    sampler: ClassVar[str] = "OpenDP discrete Laplace, i64"
    reasons: ClassVar[tuple[str, ...]] = (
        f"one loss moves the sum by at most {UNITS} and {UNITS}/scale <= epsilon; "
        f"{POST_PROCESSING}",
    )

    @property
    def grid(self) -> float:
        """dp-accounting's Laplace law is the continuous one; ours lives on a grid this fine."""
        return 2.0 / self.scale

    def prove(self, epsilon: float) -> Iterator[Finding]:
        """Prove the promise in exact arithmetic."""
        yield on_the_grid(self.units, UNITS)
        yield from prove_scale(UNITS, epsilon, self.scale)

    def loss(self, epsilon: float, rounds: int, numerics: Numerics) -> PrivacyLoss:
        """Return the privacy loss distribution."""
        single = continuous_laplace_loss(float(self.scale) / self.units, numerics)
        return single if rounds == 1 else single.self_compose(rounds)


@dataclass(frozen=True)
class MomentsMechanism(LaplaceMechanism):
    """Independent noise of one scale on a sum and on the squares beside it.

    The two move by at most the units of one loss together (``bandanna.privacy.moments``). Laplace
    noise on numbers that move by shares of that is no easier to see through than on one number that
    moves by all of it (``bandanna.privacy.composition``, on groups): the privacy loss is the same.
    """

    name: ClassVar[str] = "laplace-moments"
    reasons: ClassVar[tuple[str, ...]] = (
        f"one loss moves a sum and the squares beside it by at most {UNITS} together and "
        f"{UNITS}/scale <= epsilon; {POST_PROCESSING}",
    )


@dataclass(frozen=True)
class LaplaceRelease(PureRelease):
    """Publish the mean of a batch with Laplace noise.

    Parameters
    ----------
    epsilon
        The privacy parameter, from 1e-9 to 100.
    batch
        Rounds in a batch, at least 1. With 1 it is locally private.
    longest
        Where batches may be of other sizes, each decided from what was released before: the
        largest. The noise is on the sum, and so the promise is the same for all of them.
    squares
        Whether the squares of the losses around the middle of their range are released as well,
        with noise of the same scale. That costs nothing: see ``bandanna.privacy.moments``.
    """

    name: ClassVar[str] = "laplace"
    mechanisms: ClassVar[tuple[type[Mechanism], ...]] = (LaplaceMechanism, MomentsMechanism)
    longest: int | None = None
    squares: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.set_fields(self, squares=bool(self.squares))
        if self.longest is not None:
            checks.set_fields(
                self, longest=checks.whole("longest", self.longest, max(self.batch, 2))
            )

    def start(self, size: int | None = None) -> Tally:
        """Open a batch, of another size than ``batch`` only if the promise is about such."""
        if size not in (None, self.batch) and not 0 < size <= (self.longest or 0):
            known = f"of {self.batch}" if self.longest is None else f"up to {self.longest}"
            raise InputError(f"this Laplace release promises for batches {known}; got {size!r}.")
        return super().start(size)

    def release(self, total: int, size: int | None = None) -> float:
        """Publish a batch's mean with noise, which is on the sum and the same for any size."""
        noise = discrete_laplace_noise(laplace_scale(self.epsilon))
        noisy = within_reach(self.clamped(total, size) + noise)
        return noisy / ((size or self.batch) * UNITS)

    def guarantee(self) -> Guarantee:
        """Return the exact promise."""
        scale = laplace_scale(self.epsilon)
        sizes = f"batches of {self.batch}"
        if self.longest is not None:
            sizes = f"batches of sizes decided from earlier releases, at most {self.longest:,}"
        law = MomentsMechanism if self.squares else LaplaceMechanism
        beside = " and on the squares beside it" if self.squares else ""
        words = (
            f"discrete Laplace noise of scale {scale!r} on the sum of {sizes}{beside}, in units of "
            f"1/{UNITS}"
        )
        made = law(self.longest or self.batch, UNITS, scale)
        return self.promise(words, made, self._epsilon_at, self._group_at)

    def _epsilon_at(self, delta: float) -> float:
        """Return an epsilon at a delta: ``epsilon + 2 log(1 - delta)``, not below 0.

        Two Laplace laws of scale s whose centres are M apart have hockey-stick divergence
        ``1 - exp((e - M/s) / 2)`` at e <= M/s; solve for e. The discrete law's agrees where e is
        a multiple of 2/s away from M/s and is convex between: rounding e up to the next is safe.
        """
        step = 2.0 / laplace_scale(self.epsilon)
        smaller = self.epsilon + 2.0 * math.log1p(-delta)
        return max(0.0, min(self.epsilon, smaller + step))

    def _group_at(self, size: int, delta: float) -> float:
        """Return an epsilon for several rounds at a delta, in the worst split over batches."""
        step = 2.0 / laplace_scale(self.epsilon)
        return laplace_group(self.epsilon, size, self.longest or self.batch, step, delta)

    def to_dict(self) -> JSON:
        """Name and parameters."""
        saved = super().to_dict()
        saved |= {} if self.longest is None else {"longest": self.longest}
        return {**saved, "squares": True} if self.squares else saved

    def alone(self) -> LaplaceRelease:
        """Return the release of the sums alone: what is done to them is the same."""
        return replace(self, squares=False)

    def law(self) -> Law:
        """Return that of sums with Laplace noise; the discrete law's moments do not exceed it."""
        return law_of(laplace_scale(self.epsilon) / UNITS)

    def totals(self, seen: ArmTotals) -> Totals:
        """Return the sum of the released sums, with noise once for each batch."""
        return Totals(seen.total, seen.rounds, seen.batches)

    def guess(self, published: NDArray[np.float64]) -> NDArray[np.int64]:
        """Guess a canary where the two laws' ratio is largest: outside of their centres."""
        sums = published[:, 0] * self.batch
        return np.where(sums >= 1.0, 1, np.where(sums <= 0.0, 0, -1))

    def bins(self, total: int) -> BinnedLaw:
        """Return the exact law of what is published."""
        from scipy import stats  # loaded when first used

        law = stats.dlaplace(1.0 / laplace_scale(self.epsilon))
        noise = np.unique(law.ppf(np.linspace(0.0, 1.0, 41)[1:-1]))
        chances = np.diff(np.concatenate(([0.0], law.cdf(noise), [1.0])))
        # Half a unit above, so that rounding cannot move a value across an edge.
        return BinnedLaw((noise + total + 0.5) / (self.batch * UNITS), chances)

    def fast(self) -> FastLaplace:
        """Return the numbers for the compiled form."""
        return FastLaplace(laplace_scale(self.epsilon))


class FastLaplace(NamedTuple):
    """Numbers for the compiled form."""

    scale: float
    """Scale of the noise in grid units."""


@step
def _publish(release: FastLaplace, total: int, size: int, stream: Stream) -> float:
    unit = 1.0 / (size * UNITS)
    return (total + discrete_laplace(stream, release.scale)) * unit


publish.register(FastLaplace, _publish)
