"""Releases that publish one number from the sum of a batch's losses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from bandanna._core import checks
from bandanna._core.advice import Ticket
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream
from bandanna._core.types import JSON, Guarantee
from bandanna.counted import HALF, LARGEST_SQUARE
from bandanna.inference import Law, Totals
from bandanna.privacy.mechanism import PureMechanism
from bandanna.privacy.release import (
    ArmTotals,
    Metrics,
    Published,
    Release,
    Seeded,
    SumMemory,
    Tally,
    Values,
    publish_once,
)

if TYPE_CHECKING:
    from bandanna.privacy.columns import Columns


class Column(NamedTuple):
    """One sum of each arm beside its losses, and how it is released."""

    value: int
    """Of which value of a round: 0 is its loss, metrics follow in their order."""
    square: bool
    """Whether of its square around the middle of its range."""
    release: SumRelease

    @property
    def most(self) -> int:
        """The most that one round adds."""
        return LARGEST_SQUARE if self.square else UNITS

    def of(self, values: tuple[int, ...]) -> int:
        """Return what a round adds, whose values are on the grid."""
        units = values[self.value]
        return (units - HALF) ** 2 // UNITS if self.square else units


PUBLISHED = "this batch has been published"


class SumTally(Tally):
    """What a batch adds up: a table with a row for each arm, and a column for each sum.

    Losses are published as one sum, or in a phase as one of each arm: a loss is in one of them, so
    they cost epsilon together. Further columns are of the rounds that had feedback, arm by arm.
    """

    def __init__(self, release: SumRelease, size: int | None) -> None:
        self._release = release
        self._size = size
        """Of the batch; None in a phase, where each arm has its own."""
        self._columns: tuple[Column, ...] = ()
        self._metrics = 0
        self._missing = 0
        self._sums: dict[int, tuple[int, int]] | None = {}
        """Of the losses of each arm, and how many there are."""
        self._further: dict[int, list[int]] = {}
        """How many rounds of each arm had feedback, and their columns."""

    def also(self, columns: Columns) -> None:
        """Count further columns beside losses."""
        self._columns, self._metrics = columns.columns, columns.values - 1

    def add(
        self, units: int, ticket: Ticket | None = None, arm: int = 0, metrics: Metrics = None
    ) -> None:
        """Add a loss to the row of its arm, and what else is counted of it if it came whole."""
        assert self._sums is not None, PUBLISHED
        loss = min(max(units, 0), UNITS)
        total, count = self._sums.get(arm, (0, 0))
        self._sums[arm] = total + loss, count + 1
        if metrics is not None and self._columns and len(metrics) == self._metrics:
            values = (loss, *(min(max(one, 0), UNITS) for one in metrics)) if metrics else (loss,)
            self._count_further(arm, 1, [one.of(values) for one in self._columns])

    def add_sums(self, arm: int, count: int, totals: Sequence[int]) -> None:
        """Add an arm's sums that were added up elsewhere, forced into their range."""
        most = UNITS, *(one.most for one in self._columns)
        pairs = zip(totals, most, strict=True)
        loss, *others = [min(max(total, 0), count * each) for total, each in pairs]
        assert self._sums is not None, PUBLISHED
        total, before = self._sums.get(arm, (0, 0))
        self._sums[arm] = total + loss, before + count
        self._count_further(arm, count, others)

    def _count_further(self, arm: int, count: int, added: list[int]) -> None:
        row = self._further.get(arm)
        counted = [count, *added]
        self._further[arm] = counted if row is None else [*map(add, row, counted)]

    def fill(self, missing: int) -> None:
        """Let losses that are missing count the middle of the range: the batch stays whole."""
        assert self._sums is not None, PUBLISHED
        self._missing = missing

    @property
    def counts(self) -> dict[int, int]:
        """How many losses of each arm are counted, in the order of arms: public."""
        assert self._sums is not None, PUBLISHED
        return {arm: self._sums[arm][1] for arm in sorted(self._sums)}

    def publish(self) -> Values:
        """Publish, once: the mean loss, or that of each arm in order; then columns, arm by arm."""
        sums, self._sums, further, self._further = self._sums, None, self._further, {}
        assert sums is not None, PUBLISHED
        release = self._release.release
        if self._size is None:
            released: Values = np.array([release(*sums[arm]) for arm in sorted(sums)])
        else:
            whole = sum(total for total, _ in sums.values()) + self._missing * HALF
            released = release(whole, self._size)
        if self._columns:
            self.beside = [self._published(arm, *further[arm]) for arm in sorted(further)]
        return released

    def _published(self, arm: int, rounds: int, *sums: int) -> Published:
        pairs = zip(self._columns, sums, strict=True)
        return Published(arm, rounds, tuple(one.release.release(s, rounds) for one, s in pairs))

    def to_dict(self) -> JSON:
        """Nothing: the sums are those of the rounds that are kept with the batch."""
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

    def start_phase(self) -> Tally:
        """Open a phase."""
        return SumTally(self, None)

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
        self._fast, self.squares = release.fast(), release.squares

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
