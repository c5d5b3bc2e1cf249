"""No privacy: the mean itself, for comparisons, or nothing for policies that do not learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream
from bandanna._core.types import JSON, Guarantee, no_guarantee
from bandanna.inference import Law, law_of
from bandanna.privacy.laplace import FastLaplace
from bandanna.privacy.release import publish
from bandanna.privacy.statements import PROTECTED
from bandanna.privacy.sums import SumRelease


@dataclass(frozen=True)
class PlainRelease(SumRelease):
    """Publish the mean of a batch as it is.

    Parameters
    ----------
    batch
        Rounds in a batch, at least 1.
    longest
        Where the learner decides the sizes of batches: the largest.
    """

    batch: int = 1
    longest: int | None = None
    name: ClassVar[str] = "plain"

    def __post_init__(self) -> None:
        batch = checks.whole("batch", self.batch, at_least=1)
        longest = self.longest
        if longest is not None:
            longest = checks.whole("longest", longest, max(batch, 2))
        checks.set_fields(self, batch=batch, longest=longest)

    def release(self, total: int, size: int | None = None) -> float:
        """Publish the mean."""
        return self.clamped(total, size) * (1.0 / ((size or self.batch) * UNITS))

    def law(self) -> Law:
        """Return that of sums without noise."""
        return law_of()

    def guarantee(self) -> Guarantee:
        """Return that nothing is promised."""
        return no_guarantee("plain means", "the learner sees every loss as it is")

    def fast(self) -> FastPlain | FastLaplace:
        """Return the numbers for the compiled form.

        Learners that decide the sizes of batches are compiled for Laplace noise already; noise of
        scale 0 spares another compilation.
        """
        return FastPlain(1.0 / UNITS) if self.longest is None else FastLaplace(0.0)

    def to_dict(self) -> JSON:
        """Name and parameters."""
        saved = {"name": self.name, "batch": self.batch}
        return saved if self.longest is None else {**saved, "longest": self.longest}


class FastPlain(NamedTuple):
    """Numbers for the compiled form."""

    worth: float
    """What one grid unit of a sum is worth: 0 where nothing is to be seen."""


@step
def _publish(release: FastPlain, total: int, size: int, stream: Stream) -> float:
    return total * (release.worth / size)


publish.register(FastPlain, _publish)


@dataclass(frozen=True)
class SilentRelease(SumRelease):
    """Publish nothing about a batch: always 0."""

    batch: int = 1
    name: ClassVar[str] = "silent"

    def __post_init__(self) -> None:
        checks.set_fields(self, batch=checks.whole("batch", self.batch, at_least=1))

    def release(self, total: int, size: int | None = None) -> float:
        """Publish 0."""
        return 0.0

    def guarantee(self) -> Guarantee:
        """Return the strongest promise there is."""
        return Guarantee(
            epsilon=0.0,
            delta=0.0,
            protects=PROTECTED,
            model="local",
            mechanism="none: feedback is not used",
            because="decisions do not depend on feedback",
            facts={"mechanism": "silent", "batch": self.batch},
            curve=lambda delta: 0.0,
        )

    def fast(self) -> FastPlain:
        """Return the numbers for the compiled form: every unit is worth nothing."""
        return FastPlain(0.0)

    def to_dict(self) -> JSON:
        """Name and parameters."""
        return {"name": self.name, "batch": self.batch}
