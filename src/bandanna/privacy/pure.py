"""What releases with a pure epsilon have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bandanna._core import checks
from bandanna._core.types import JSON, Guarantee
from bandanna.privacy.mechanism import Mechanism
from bandanna.privacy.statements import PROTECTED
from bandanna.privacy.sums import SumRelease


@dataclass(frozen=True)
class PureRelease(SumRelease):
    """A release of sums that is proved to have its epsilon, and no delta."""

    epsilon: float
    batch: int

    def __post_init__(self) -> None:
        batch = checks.whole("batch", self.batch, at_least=1)
        checks.settle(self, epsilon=checks.epsilon(self.epsilon), batch=batch)

    def promise(
        self,
        mechanism: str,
        law: Mechanism,
        curve: Callable[[float], float],
        group: Callable[[int, float], float] | None = None,
    ) -> Guarantee:
        """Return the guarantee of a mechanism that is proved to have this epsilon."""
        return Guarantee(
            epsilon=self.epsilon,
            delta=0.0,
            protects=PROTECTED,
            model=law.model,
            mechanism=mechanism,
            because=law.reasons[0],
            facts=law.facts(),
            curve=curve,
            group=group,
        )

    def to_dict(self) -> JSON:
        """Name and parameters."""
        return {"name": self.name, "epsilon": self.epsilon, "batch": self.batch}
