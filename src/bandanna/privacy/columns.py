"""What a batch releases of each arm beside the sum of its losses: declared here, and nowhere else.

A round's feedback is a loss and one value for each metric. A column is a sum over the rounds of an
arm that had feedback: of a metric, or of the squares of the loss or of a metric around the middle
of its range. Each has discrete Laplace noise of its own. What they cost together is said where
their releases are: metrics have parts of epsilon, and squares cost nothing beside their sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bandanna._core.grid import UNITS
from bandanna._core.types import Guarantee, InputError, no_guarantee, plain
from bandanna.privacy.laplace import LaplaceRelease, laplace_scale
from bandanna.privacy.metrics import OUTCOMES, MetricsMechanism
from bandanna.privacy.release import Release, Seeded
from bandanna.privacy.sums import Column, SumRelease

LOSS = 0
"""Which value of a round its loss is; metrics follow in their order."""


@dataclass(frozen=True)
class Columns:
    """The columns of a policy, in the order in which they are released."""

    columns: tuple[Column, ...]
    ranges: Mapping[str, tuple[float, float]]
    """Of metrics, by name, in their order."""
    epsilon: float
    """Of each metric."""
    squares: bool
    """Whether squares go beside all sums, at no further cost; or beside none."""

    @classmethod
    def of(
        cls,
        release: Release,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        epsilon: float = 1.0,
    ) -> Columns | None:
        """Return the columns beside a release of losses; None where there are none."""
        columns: list[Column] = []
        if isinstance(release, SumRelease) and release.squares:
            columns.append(Column(LOSS, square=True, release=release))
        made = cls((), ranges or {}, epsilon, squares=bool(columns))
        each: SumRelease = made.each
        if isinstance(release, Seeded):
            each = each.seeded(release.stream)
        for value in range(1, made.values):
            columns.append(Column(value, square=False, release=each))
            if made.squares:
                columns.append(Column(value, square=True, release=each))
        return replace(made, columns=tuple(columns)) if columns else None

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def each(self) -> LaplaceRelease:
        """What each metric is released by."""
        return LaplaceRelease(self.epsilon, 1, squares=self.squares)

    @property
    def values(self) -> int:
        """How many values a round has: its loss, and its metrics."""
        return 1 + len(self.ranges)

    def index(self, value: int, *, square: bool) -> int | None:
        """Return which column a sum is; None where there is none."""
        places = {(one.value, one.square): at for at, one in enumerate(self.columns)}
        return places.get((value, square))

    def guarantee(self, outcome: Guarantee) -> Guarantee:
        """Return what holds for the outcome and everything beside it together."""
        if not self.ranges:
            return outcome
        if not outcome.private:
            return no_guarantee(f"{outcome.mechanism}, with metrics", outcome.because)
        facts = dict(outcome.facts)
        if facts.get("mechanism") not in OUTCOMES or outcome.delta > 0.0:
            raise InputError(
                f"metrics go with one-bit and Laplace releases, not with {facts.get('mechanism')}."
            )
        scale = laplace_scale(self.epsilon)
        law = MetricsMechanism(
            facts["batch"],
            facts["units"],
            facts,
            outcome.epsilon,
            [
                {"name": name, "low": low, "high": high, "epsilon": self.epsilon, "scale": scale}
                | ({"squares": True} if self.squares else {})
                for name, (low, high) in self.ranges.items()
            ],
        )
        listed = ", ".join(self.ranges)
        beside = " and on the squares beside it" if self.squares else ""
        words = (
            f"for each of the metrics {listed} discrete Laplace noise of scale {scale!r} on its "
            f"sum{beside}, in units of 1/{UNITS} of its range (epsilon {plain(self.epsilon)} each)"
        )
        promise = law.joined(outcome, [self.epsilon] * len(self.ranges), words)
        return replace(promise, model=outcome.model)
