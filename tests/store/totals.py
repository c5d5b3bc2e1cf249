"""What releases add up to, computed in Python: what the database is held to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bandanna.store.rows import ReleaseRow
from bandanna.store.totals import Half, ReleaseTotals, TrendPoint, points_of


def totals_of(releases: Sequence[ReleaseRow]) -> ReleaseTotals:
    """Add up releases that are in memory."""
    rounds: dict[int, int] = {}
    values: dict[int, list[float]] = {}
    releases = [release for release in releases if release.size > 0]
    step, points = points_of(len(releases)), list[TrendPoint]()
    for k, release in enumerate(releases):
        rounds[release.choice] = rounds.get(release.choice, 0) + release.size
        if k % step == 0:
            points.append(TrendPoint(release.released_at, {}, {}))
        _, here, released = points[-1]
        here[release.choice] = here.get(release.choice, 0) + release.size
        points[-1] = TrendPoint(release.released_at, here, released)
        if isinstance(release.value, int | float):
            count, total = released.get(release.choice, (0, 0.0))
            released[release.choice] = count + 1, total + release.size * release.value
            values.setdefault(release.choice, []).append(float(release.value))
    halves = {arm: _halves(both_halves) for arm, both_halves in values.items()}
    weighed = any(isinstance(release.value, list) for release in releases)
    batches = len({release.batch for release in releases})
    return ReleaseTotals(batches, rounds, points, halves, weighed)


def _halves(values: list[float]) -> tuple[Half, Half]:
    middle = len(values) // 2
    first, second = (
        Half(len(some), math.fsum(some), math.fsum(v * v for v in some))
        for some in (values[:middle], values[middle:])
    )
    return first, second
