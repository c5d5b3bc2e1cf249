"""Releases that publish one number from the sum of a batch's losses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.advice import Ticket
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream
from bandanna._core.types import JSON, Guarantee
from bandanna.inference import Law, Totals
from bandanna.privacy.mechanism import PureMechanism
from bandanna.privacy.release import ArmTotals, Release, Seeded, SumMemory, Tally, publish_once


class SumTally(Tally):
    """The sum of a batch's losses."""

    def __init__(self, release: SumRelease, size: int) -> None:
        self._release = release
        self._size = size
        self._total: int | None = 0

    def add(self, units: int, ticket: Ticket | None = None) -> None:
        """Add a loss to the sum."""
        assert self._total is not None, "this batch has been published"
        self._total += min(max(units, 0), UNITS)

    def fill(self, missing: int) -> None:
        """Add the middle of the range for losses that are missing: the batch stays whole."""
        assert self._total is not None, "this batch has been published"
        self._total += missing * (UNITS // 2)

    def publish(self) -> float:
        """Publish the sum, once."""
        total, self._total = self._total, None
        assert total is not None, "this batch has been published"
        return self._release.release(total, self._size)

    def to_dict(self) -> JSON:
        """Nothing: the sum is that of the ledger's losses."""
        return {}


class PhaseTally(Tally):
    """One sum for each arm of a phase. A loss is in one of them, so they cost epsilon together."""

    def __init__(self, release: SumRelease) -> None:
        self._release = release
        self._sums: dict[int, list[int]] | None = {}

    def add(self, units: int, ticket: Ticket | None = None) -> None:
        """Refuse: a phase counts losses by arm."""
        raise AssertionError("a phase counts losses by arm: add_to")

    def add_to(self, arm: int, units: int) -> None:
        """Add a loss to the sum of its arm."""
        assert self._sums is not None, "this phase has been published"
        total, count = self._sums.get(arm, (0, 0))
        self._sums[arm] = [total + min(max(units, 0), UNITS), count + 1]

    def add_sum(self, arm: int, total: int, count: int) -> None:
        """Add losses of an arm that were added up elsewhere, forced into their range."""
        assert self._sums is not None, "this phase has been published"
        known, before = self._sums.get(arm, (0, 0))
        self._sums[arm] = [known + min(max(total, 0), count * UNITS), before + count]

    @property
    def counts(self) -> dict[int, int]:
        """How many losses are in the sum of each arm, in the order of arms: public."""
        assert self._sums is not None, "this phase has been published"
        return {arm: self._sums[arm][1] for arm in sorted(self._sums)}

    def publish(self) -> NDArray[np.float64]:
        """Publish the mean of each arm that was played, in the order of arms, once."""
        sums, self._sums = self._sums, None
        assert sums is not None, "this phase has been published"
        return np.array([self._release.release(*sums[arm]) for arm in sorted(sums)])

    def to_dict(self) -> JSON:
        """Nothing: the sums are those of the losses that are kept with the batch."""
        return {}


class SumRelease(Release):
    """A release that needs only the sum of a batch's losses, and publishes one number."""

    squares: bool = False
    """Whether the squares of losses are released beside their sum: see ``privacy.columns``."""
    adds_up: ClassVar[bool] = True
    """Whether it publishes the sum with noise, so that a known loss can be taken out of it."""

    @abstractmethod
    def release(self, total: int, size: int | None = None) -> float:
        """Publish a sum, clamped to ``[0, size * UNITS]``; ``size`` is the batch's own if None."""

    def law(self) -> Law | None:
        """Return how what it publishes depends on mean losses; None where it does not."""
        return None

    def totals(self, seen: ArmTotals) -> Totals:
        """Return what it has published of an arm, for ``bandanna.inference``."""
        return Totals(seen.total, seen.rounds)

    def start(self, size: int | None = None) -> Tally:
        """Open a batch."""
        return SumTally(self, self.batch if size is None else size)

    def start_phase(self) -> PhaseTally:
        """Open a phase."""
        return PhaseTally(self)

    def resume(self, saved: JSON, losses: list[int], size: int) -> Tally:
        """Add what was observed so far."""
        if saved:
            raise ValueError(f"{self.name} has no further state; got {sorted(saved)}")
        tally = self.start(size)
        for units in losses:
            tally.add(units)
        return tally

    def suits(self, experts: int, arms: int, mixing: float) -> bool:
        """One loss at a time can be credited to experts."""
        return self.batch == 1

    def memory(self) -> SumMemory:
        """Return a memory with one sum."""
        return SumMemory(np.zeros(1, dtype=np.int64), np.zeros(0))

    def seeded(self, stream: Stream) -> SeededRelease:
        """Return the same release with repeatable noise, which protects nobody."""
        return SeededRelease(self, stream)

    def clamped(self, total: int, size: int | None) -> int:
        """Return the sum, forced into the range of a batch of honest losses."""
        return min(max(total, 0), (self.batch if size is None else size) * UNITS)


class SeededRelease(Seeded[SumRelease], SumRelease):
    """A release of sums with repeatable noise, for tests and simulation: it protects nobody."""

    def __init__(self, release: SumRelease, stream: Stream) -> None:
        super().__init__(release, stream)
        self.squares = release.squares

    def release(self, total: int, size: int | None = None) -> float:
        """Publish a batch's sum with seeded noise."""
        return publish_once(self._fast, total, self.batch if size is None else size, self.stream)


@dataclass(frozen=True)
class PureRelease(SumRelease):
    """A release of sums that is proved to have its epsilon, and no delta."""

    epsilon: float
    batch: int

    def __post_init__(self) -> None:
        batch = checks.whole("batch", self.batch, at_least=1)
        checks.set_fields(self, epsilon=checks.epsilon(self.epsilon), batch=batch)

    def promise(
        self,
        mechanism: str,
        law: PureMechanism,
        curve: Callable[[float], float],
        group: Callable[[int, float], float] | None = None,
    ) -> Guarantee:
        """Return the guarantee of a mechanism that is proved to have this epsilon."""
        return replace(law.promise(self.epsilon, mechanism), curve=curve, group=group)

    def to_dict(self) -> JSON:
        """Name and parameters."""
        return {"name": self.name, "epsilon": self.epsilon, "batch": self.batch}
