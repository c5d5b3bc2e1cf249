"""What a batch releases of each arm beside the sum of its losses: declared here, and nowhere else.

A round's feedback is a loss and one value for each metric. A column is a sum over the rounds of an
arm that had feedback: of a metric, or of the squares of the loss or of a metric around the middle
of its range. Each has discrete Laplace noise of its own. What they cost together is said where
their releases are: metrics have parts of epsilon, and squares cost nothing beside their sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bandanna._core.grid import UNITS
from bandanna.counted import HALF, LARGEST_SQUARE
from bandanna.privacy.metrics import MetricsRelease
from bandanna.privacy.release import Release, Seeded
from bandanna.privacy.sums import SumRelease

LOSS = 0
"""Which value of a round its loss is; metrics follow in their order."""


class Column(NamedTuple):
    """One sum of each arm, and how it is released."""

    value: int
    """Of which value of a round."""
    square: bool
    """Whether of its square around the middle of its range."""
    release: SumRelease


class Published(NamedTuple):
    """What one batch released of an arm's columns: public."""

    arm: int
    rounds: int
    """How many of its rounds, or slots of people, had feedback."""
    means: tuple[float, ...]


@dataclass(frozen=True)
class Columns:
    """The columns of a policy, in the order in which they are released."""

    columns: tuple[Column, ...]
    metrics: MetricsRelease | None = None

    @classmethod
    def of(cls, release: Release, metrics: MetricsRelease | None) -> Columns | None:
        """Return the columns beside a release of losses; None where there are none."""
        columns: list[Column] = []
        if metrics is not None and isinstance(release, Seeded):
            metrics = metrics.seeded(release.stream)
        if isinstance(release, SumRelease) and release.squares:
            columns.append(Column(LOSS, square=True, release=release))
        if metrics is not None:
            each = metrics.each
            for value in range(1, len(metrics.names) + 1):
                columns.append(Column(value, square=False, release=each))
                if metrics.squares:
                    columns.append(Column(value, square=True, release=each))
        return cls(tuple(columns), metrics) if columns else None

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def values(self) -> int:
        """How many values a round has: its loss, and its metrics."""
        return 1 + (0 if self.metrics is None else len(self.metrics.names))

    def index(self, value: int, *, square: bool) -> int | None:
        """Return which column a sum is; None where there is none."""
        places = {(one.value, one.square): at for at, one in enumerate(self.columns)}
        return places.get((value, square))

    def start(self) -> ColumnsTally:
        """Open a batch."""
        return ColumnsTally(self.columns, self.values)


class ColumnsTally:
    """One batch's columns by arm, from the first value until they are published."""

    def __init__(self, columns: tuple[Column, ...], values: int) -> None:
        self._columns = columns
        self.values = values
        """How many values a round has."""
        self._what = [(one.value, one.square) for one in columns]
        self._sums: dict[int, list[int]] | None = {}

    def add(self, arm: int, values: tuple[int, ...]) -> None:
        """Count the values of a round, or of a person, clamped to the grid."""
        sums = self._of(arm)
        sums[0] += 1
        for at, (value, square) in enumerate(self._what, 1):
            units = min(max(values[value], 0), UNITS)
            sums[at] += (units - HALF) ** 2 // UNITS if square else units

    def add_sums(self, arm: int, count: int, totals: tuple[int, ...]) -> None:
        """Count columns of an arm that were added up elsewhere, forced into their range."""
        sums = self._of(arm)
        sums[0] += count
        for at, (total, (_, square)) in enumerate(zip(totals, self._what, strict=True), 1):
            sums[at] += min(max(total, 0), count * (LARGEST_SQUARE if square else UNITS))

    def _of(self, arm: int) -> list[int]:
        assert self._sums is not None, "this batch has been published"
        sums = self._sums.get(arm)
        if sums is None:
            sums = self._sums[arm] = [0] * (len(self._columns) + 1)
        return sums

    def publish(self) -> list[Published]:
        """Publish each arm's count and means, in the order of arms, once."""
        sums, self._sums = self._sums, None
        assert sums is not None, "this batch has been published"
        return [Published(arm, sums[arm][0], self._means(*sums[arm])) for arm in sorted(sums)]

    def _means(self, count: int, *sums: int) -> tuple[float, ...]:
        pairs = zip(self._columns, sums, strict=True)
        return tuple(one.release.release(total, count) for one, total in pairs)
