"""What a batch releases of each arm beside the sum of its losses: declared here, and nowhere else.

A round's feedback is a loss and one value for each metric. A column is a sum over the rounds of an
arm that had feedback: of a metric, or of the squares of the loss or of a metric around the middle
of its range. Each has discrete Laplace noise of its own. What they cost together is said where
their releases are: metrics have parts of epsilon, and squares cost nothing beside their sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from bandanna.privacy.metrics import MetricsRelease
from bandanna.privacy.release import Release, Seeded
from bandanna.privacy.sums import Column, SumRelease

LOSS = 0
"""Which value of a round its loss is; metrics follow in their order."""


@dataclass(frozen=True)
class Columns:
    """The columns of a policy, in the order in which they are released."""

    columns: tuple[Column, ...]
    metrics: MetricsRelease | None = None

    @classmethod
    def of(cls, release: Release, metrics: MetricsRelease | None) -> Columns | None:
        """Return the columns beside a release of losses; None where there are none."""
        columns: list[Column] = []
        if isinstance(release, SumRelease) and release.squares:
            columns.append(Column(LOSS, square=True, release=release))
        if metrics is not None:
            each: SumRelease = metrics.each
            if isinstance(release, Seeded):
                each = each.seeded(release.stream)
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
