"""Nothing is released: for a policy that does not learn from feedback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bandanna._core import checks
from bandanna._core.types import JSON, Guarantee
from bandanna.privacy.plain import FastPlain
from bandanna.privacy.statements import PROTECTED
from bandanna.privacy.sums import SumRelease


@dataclass(frozen=True)
class SilentRelease(SumRelease):
    """Publish nothing about a batch: always 0."""

    batch: int = 1
    name: ClassVar[str] = "silent"

    def __post_init__(self) -> None:
        checks.settle(self, batch=checks.whole("batch", self.batch, at_least=1))

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
        """Return the numbers for the compiled face: every unit is worth nothing."""
        return FastPlain(0.0)

    def to_dict(self) -> JSON:
        """Name and parameters."""
        return {"name": self.name, "batch": self.batch}
