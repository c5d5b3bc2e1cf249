"""A release: Laplace noise for half of the epsilon it promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from bandanna._core.grid import UNITS
from bandanna._core.types import Guarantee
from bandanna.privacy.laplace import FastLaplace, LaplaceMechanism, LaplaceRelease, laplace_scale
from bandanna.privacy.mechanism import Finding
from bandanna.privacy.registry import register
from bandanna.privacy.sums import PureRelease


@dataclass(frozen=True)
class CautiousMechanism(LaplaceMechanism):
    """The same law, with room to spare."""

    name: ClassVar[str] = "toy-cautious"

    def prove(self, epsilon: float) -> Iterator[Finding]:
        """Half of the epsilon would do."""
        holds = 2 * self.units <= Fraction(epsilon) * Fraction(self.scale)
        yield Finding("epsilon", holds, "2 units / scale <= epsilon, in exact fractions")


@register
@dataclass(frozen=True)
class CautiousRelease(PureRelease):
    """Twice the noise that the promise needs."""

    name: ClassVar[str] = "toy-cautious"
    mechanisms: ClassVar = (CautiousMechanism,)

    def release(self, total: int, size: int | None = None) -> float:
        """Publish a mean."""
        return LaplaceRelease(self.epsilon / 2, self.batch).release(total, size)

    def fast(self) -> FastLaplace:
        """Return the numbers of the compiled form, which is Laplace's."""
        return FastLaplace(laplace_scale(self.epsilon / 2))

    def guarantee(self) -> Guarantee:
        """Return the promise."""
        law = CautiousMechanism(self.batch, UNITS, laplace_scale(self.epsilon / 2))
        return self.promise(
            f"twice the noise on batches of {self.batch}", law, lambda delta: self.epsilon
        )
