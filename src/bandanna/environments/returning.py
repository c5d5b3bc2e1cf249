"""People who return: environments that know whose round it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream, binomial, uniform
from bandanna._core.types import InputError
from bandanna.environments.base import Memory, register
from bandanna.environments.log import Integers, Log
from bandanna.environments.synthetic import Steps, one_better


def slots_of(groups: Integers) -> tuple[Integers, Integers]:
    """Number groups of rows by their first row; returns each row's number, and those first rows."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank[number.ravel()].astype(np.int64), first[order].astype(np.int64)


def mean_units(units: Integers, slot: Integers, slots: int) -> Integers:
    """Return each slot's mean on the grid, rounded half to even, as policies count it."""
    count = np.bincount(slot, minlength=slots).astype(np.int64)
    total = np.zeros(slots, dtype=np.int64)
    np.add.at(total, slot, units)
    whole, rest = np.divmod(total, count)
    twice = 2 * rest - count
    up = (twice > 0) | ((twice == 0) & (whole % 2 == 1))
    means: Integers = whole + up
    return means


def log_by_person(log: Log) -> Log:
    """Return a log of slots: what one person met of one arm is one row, at its first time.

    Propensity and segment are those of the first row, by which the person got the arm.
    """
    assert log.people is not None, "the log does not know its people"
    slot, first = slots_of(log.people * len(log.arm_names) + log.arms)
    return replace(
        log,
        arms=log.arms[first],
        units=mean_units(log.units, slot, first.size),
        propensity=None if log.propensity is None else log.propensity[first],
        people=log.people[first],
        segments=log.segments[first],
    )


class ReturningParams(NamedTuple):
    """Each arm's mean, how often everyone comes, and the chance to come once more."""

    means: NDArray[np.float64]
    visits: int
    again: float


class Returning(Steps):
    """Persons with slots: each visits several times, and every visit's loss is 0 or 1.

    A round is a slot, and its loss the mean over the person's visits, rounded to the grid half to
    even: what a policy with ``per_person`` counts. So regret is counted by people.

    Parameters
    ----------
    arms
        Their mean losses; or how many, one with mean ``1/2 - gap/2``, the others ``1/2 + gap/2``.
    rounds
        How many slots, one a person where each has one.
    returning
        After each visit, the chance to come once more while the slot is open.
    visits
        Instead: how often everyone comes.
    gap
        How much better the best arm, the first, is; above 0 and at most 1.

    Examples
    --------
    >>> import bandanna as bd
    >>> people = bd.environments.Returning(arms=2, rounds=2000, visits=10)
    >>> policy = bd.PrivateBandit(2, epsilon=1.0, rounds=2000, per_person=1)
    >>> bd.simulate(policy, people, replicates=5).regret("policy").shape
    (5,)
    """

    name = "returning"
    comparator = "expected"

    def __init__(
        self,
        arms: int | Sequence[float],
        rounds: int,
        returning: float = 0.0,
        visits: int | None = None,
        gap: float = 0.2,
    ) -> None:
        means = arms if isinstance(arms, Sequence) else one_better(checks.arms(arms), 0, gap)
        self._means = np.array([[checks.within("a mean", mean, 0.0, 1.0) for mean in means]])
        self.arms = checks.arms(self._means.size)
        self.rounds = checks.rounds(rounds)
        self._edges = np.array([0, self.rounds])
        again = checks.within("returning", returning, 0.0, 0.999)
        if visits is not None and again > 0.0:
            raise InputError("give returning= or visits=, not both.")
        often = 1 if visits is None else checks.whole("visits", visits, 1, 10**6)
        self._params = ReturningParams(self._means[0], often, again)

    def params(self) -> ReturningParams:
        """Return the means and how often people come."""
        return self._params


@step
def _sum_losses(
    params: ReturningParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    total = 0
    for _ in range(start, stop):
        visits = params.visits
        while params.again > 0.0 and uniform(stream) < params.again:
            visits += 1
        bad = binomial(stream, visits, params.means[arm])
        whole, rest = divmod(bad * UNITS, visits)
        twice = 2 * rest - visits
        if twice > 0 or (twice == 0 and whole % 2 == 1):
            whole += 1
        total += whole
    return total


register(ReturningParams, _sum_losses)
