"""What releases add up to, computed by the database: reading a million rows keeps nobody waiting.

Nothing here runs on the writer's thread or holds a lock, and Python sees a few rows alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Float, case, cast, func, or_, select

from bandanna.store.database import RELEASES

POINTS, FEWEST = 50, 10
"""Most points of a chart, and fewest batches behind each."""


class Half(NamedTuple):
    """The first or the second half of an arm's releases."""

    batches: int
    total: float
    squares: float
    """The sum of squares."""


class TrendPoint(NamedTuple):
    """What was released between two moments."""

    at: float
    """When its last batch was released."""
    rounds: dict[int, int]
    """Rounds by arm, or with experts by the expert that was followed."""
    released: dict[int, tuple[int, float]]
    """By arm: how many values were released, and their sum, each times the size of its batch."""


class ReleaseTotals(NamedTuple):
    """What the releases of one experiment add up to."""

    batches: int
    rounds: dict[int, int]
    """Rounds by arm, or with experts by the expert that was followed."""
    points: list[TrendPoint]
    halves: dict[int, tuple[Half, Half]]
    """The first and the second half of each arm's releases, where they are single numbers."""
    weighed: bool
    """Whether releases are vectors."""


def points_of(batches: int) -> int:
    """Return how many batches make a point of a chart."""
    return max(FEWEST, math.ceil(batches / POINTS))


def read_totals(connection: Connection, experiment: int) -> ReleaseTotals:
    """Add up the releases of an experiment in the database."""
    row, run = RELEASES.c, connection.execute
    mine = (row.experiment == experiment) & (row.size > 0)  # otherwise nothing was released
    vector = case((row.value.like("[%"), 1), else_=0)
    counts = func.count(), func.sum(vector), func.max(row.part)
    query = select(row.choice, func.sum(row.size), *counts)
    rows = run(query.where(mine).group_by(row.choice)).all()
    batches, weighed = sum(one[2] for one in rows), any(one[3] for one in rows)
    if any(one[4] for one in rows):  # batches that released a value of each arm
        batches = run(select(func.count(row.batch.distinct())).where(mine)).scalar_one()
    begin, end = run(select(func.min(row.sequence), func.max(row.sequence)).where(mine)).one()
    bucket = (row.sequence - (begin or 0)) // points_of((end or 0) - (begin or 0) + 1)
    query = select(bucket, row.choice, func.sum(row.size), func.max(row.released_at))
    query = query.add_columns(func.count(_value()), func.sum(_value() * row.size))
    points: dict[int, TrendPoint] = {}
    for number, choice, size, at, count, total in run(
        query.where(mine).group_by(bucket, row.choice)
    ):
        here = points.setdefault(number, TrendPoint(at, {}, {}))
        here.rounds[choice], here.released[choice] = int(size), (count, float(total or 0.0))
        points[number] = here._replace(at=max(at, here.at))
    return ReleaseTotals(
        batches,
        {one[0]: int(one[1]) for one in rows},
        [points[number] for number in sorted(points)],
        {} if weighed else _read_halves(connection, experiment),
        weighed,
    )


def _value() -> ColumnElement[float | None]:
    """Return a released value, where it is a single number."""
    value = RELEASES.c.value
    return cast(case((or_(value.like("[%"), value == "null"), None), else_=value), Float)


def _read_halves(connection: Connection, experiment: int) -> dict[int, tuple[Half, Half]]:
    row = RELEASES.c
    ranked = (
        select(
            row.choice,
            _value().label("value"),
            func.row_number().over(order_by=row.sequence, partition_by=row.choice).label("rank"),
            func.count().over(partition_by=row.choice).label("all"),
        )
        .where(row.experiment == experiment, row.size > 0)
        .subquery()
    ).c
    half = case((ranked.rank <= ranked.all // 2, 0), else_=1)
    value = ranked.value
    query = select(ranked.choice, half, func.count(value), func.sum(value), func.sum(value * value))
    by_arm: dict[int, list[Half]] = {}
    for choice, which, count, total, squares in connection.execute(
        query.group_by(ranked.choice, half)
    ):
        halves = by_arm.setdefault(choice, [Half(0, 0.0, 0.0)] * 2)
        halves[which] = Half(count, total or 0.0, squares or 0.0)
    return {choice: (first, second) for choice, (first, second) in by_arm.items()}
