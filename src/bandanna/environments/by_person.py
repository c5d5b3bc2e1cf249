"""People's own data by person: rows of one person are one place, which counts their mean.

So people come back as often as they do in the data, and regret is counted by people.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bandanna.environments.log import Integers, Log


def places_of(groups: Integers) -> tuple[Integers, Integers]:
    """Number groups of rows by their first row; returns each row's number, and those first rows."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank[number.ravel()].astype(np.int64), first[order].astype(np.int64)


def mean_units(units: Integers, place: Integers, places: int) -> Integers:
    """Return each place's mean on the grid, rounded half to even, as policies count it."""
    count = np.bincount(place, minlength=places).astype(np.int64)
    total = np.zeros(places, dtype=np.int64)
    np.add.at(total, place, units)
    whole, rest = np.divmod(total, count)
    twice = 2 * rest - count
    up = (twice > 0) | ((twice == 0) & (whole % 2 == 1))
    means: Integers = whole + up
    return means


def log_by_person(log: Log) -> Log:
    """Return a log of places: what one person met of one arm is one row, at its first time.

    Propensity and segment are those of the first row, by which the person got the arm.
    """
    assert log.people is not None, "the log does not know its people"
    place, first = places_of(log.people * len(log.arm_names) + log.arms)
    return replace(
        log,
        arms=log.arms[first],
        units=mean_units(log.units, place, first.size),
        propensity=None if log.propensity is None else log.propensity[first],
        people=log.people[first],
        segments=log.segments[first],
    )
