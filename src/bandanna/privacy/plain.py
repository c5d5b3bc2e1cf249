"""No privacy: the mean itself, as the non-private end of every comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bandanna import checks
from bandanna.grid import UNITS
from bandanna.privacy.release import PLAIN, FastRelease, Release
from bandanna.types import JSON, Guarantee, no_guarantee


@dataclass(frozen=True)
class PlainRelease(Release):
    """Publish the mean of a batch as it is.

    Parameters
    ----------
    batch
        Rounds in a batch, at least 1.
    """

    batch: int = 1
    name: ClassVar[str] = "plain"

    def __post_init__(self) -> None:
        checks.settle(self, batch=checks.whole("batch", self.batch, at_least=1))

    def release(self, total: int) -> float:
        """Publish the mean."""
        return total * self.fast().unit

    def guarantee(self) -> Guarantee:
        """Return that nothing is promised."""
        return no_guarantee("plain means", "the learner sees every loss as it is")

    def fast(self) -> FastRelease:
        """Return the numbers for the compiled face."""
        return FastRelease(PLAIN, 1.0 / (self.batch * UNITS), 0.0, 0.0, 0.0)

    def to_dict(self) -> JSON:
        """Name and parameters."""
        return {"name": self.name, "batch": self.batch}
