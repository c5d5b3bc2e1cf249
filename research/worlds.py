"""What ordinary experiments meet: weekdays, trends, novelty, arms that wake, narrow losses.

Reproductions and benchmarks play in these worlds; importing this file makes them known by name.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream, binomial
from bandanna._core.types import InputError
from bandanna.environments import register as register_name
from bandanna.environments.base import Environment, Memory, register
from bandanna.environments.synthetic import Segments, one_better

PIECES = 400
"""Pieces of constant means that a curve is made of."""


def _curve(arms: int, rounds: int) -> tuple[int, NDArray[np.int64], NDArray[np.float64]]:
    """Return the arms, checked, the lengths of pieces, and the middle of each in [0, 1]."""
    rounds = checks.rounds(rounds)
    edges = np.unique(np.linspace(0, rounds, min(PIECES, rounds) + 1).astype(np.int64))
    middles = 0.5 * (edges[1:] + edges[:-1]) / rounds
    return checks.arms(arms), np.diff(edges), middles


class CommonEffects(Segments):
    """Weekdays and a trend that move all arms alike; the first arm is always the best.

    Losses are 0 or 1, drawn independently. Who compares an arm's losses of one week with another
    arm's of the next is misled; differences at the same time are steady.

    Parameters
    ----------
    arms, rounds
        Size of the problem.
    gap
        How much better the first arm is.
    weekday
        Size of the weekly wave.
    weeks
        How many weeks there are.
    trend
        How much all losses grow from the first round to the last.
    """

    name = "common-effects"

    def __init__(
        self,
        arms: int,
        rounds: int,
        gap: float = 0.1,
        weekday: float = 0.1,
        weeks: float = 8.0,
        trend: float = 0.2,
    ) -> None:
        arms, lengths, time = _curve(arms, rounds)
        wave = weekday * np.sin(2.0 * math.pi * weeks * time) + trend * (time - 0.5)
        means = np.array(one_better(arms, 0, gap)) + wave[:, np.newaxis]
        if means.min() < 0.0 or means.max() > 1.0:
            raise InputError(
                f"gap/2 + weekday + trend/2 must be at most 0.5 for losses to stay in [0, 1]; got "
                f"{gap!r}, {weekday!r} and {trend!r}."
            )
        super().__init__(means, lengths, bernoulli=True)


class Novelty(Segments):
    """The last arm looks best while it is new; then the first one is. Losses are 0 or 1.

    Parameters
    ----------
    arms, rounds
        Size of the problem.
    gap
        How much better the first arm is than all others in the long run.
    novelty
        By how much the last arm is better at first than in the long run, above ``gap``.
    fades
        Share of the rounds after which about a third of that is left.
    """

    name = "novelty"

    def __init__(
        self,
        arms: int,
        rounds: int,
        gap: float = 0.05,
        novelty: float = 0.15,
        fades: float = 0.08,
    ) -> None:
        arms, lengths, time = _curve(arms, rounds)
        checks.within("novelty", novelty, gap, 0.5)
        checks.positive("fades", fades)
        means = np.tile(one_better(arms, 0, gap), (time.size, 1))
        means[:, -1] -= novelty * np.exp(-time / fades)
        super().__init__(means, lengths, bernoulli=True)


class Waking(Segments):
    """An arm that was as bad as the others becomes the best, and nothing else changes.

    Losses are 0 or 1. Who has stopped playing that arm does not see it. Regret is against the best
    fixed arm.

    Parameters
    ----------
    arms, rounds
        Size of the problem.
    gap
        How much better the first arm is before; mean losses are ``1/2 - gap`` and ``1/2``.
    wakes
        Share of the rounds after which the last arm becomes the best.
    by
        How much better than the first it is then.
    """

    name = "waking"

    def __init__(
        self, arms: int, rounds: int, gap: float = 0.05, wakes: float = 0.5, by: float = 0.25
    ) -> None:
        arms = checks.arms(arms)
        rounds = checks.whole("rounds", rounds, 2, checks.MAX_ROUNDS)
        checks.within("wakes", wakes, 0.0, 1.0)
        if not 0.0 < gap + by <= 0.5:
            raise InputError(f"gap + by must be above 0 and at most 0.5; got {gap!r} and {by!r}.")
        before = np.full(arms, 0.5)
        before[0] -= gap
        after = before.copy()
        after[-1] = before[0] - by
        first = min(max(round(wakes * rounds), 1), rounds - 1)
        super().__init__([before, after], [first, rounds - first], bernoulli=True)


class NarrowParams(NamedTuple):
    """Mean loss of each arm, and how far losses are from it."""

    means: NDArray[np.float64]
    width: float


class Narrow(Environment):
    """Losses that vary little: each is ``width`` above or below its arm's mean, at random.

    Counts that are divided by the largest possible one are like this: their variance is much
    smaller than ``mean (1 - mean)``.

    Parameters
    ----------
    arms, rounds
        Size of the problem.
    level
        Mean loss of all arms but the best.
    gap
        How much better the best arm, the first one, is.
    width
        Standard deviation of a loss.
    """

    name = "narrow"

    def __init__(
        self,
        arms: int,
        rounds: int,
        level: float = 0.2,
        gap: float = 0.04,
        width: float = 0.1,
    ) -> None:
        self.arms, self.rounds = checks.arms(arms), checks.rounds(rounds)
        if not (level - gap - width >= 0.0 and level + width <= 1.0 and gap > 0.0 and width > 0.0):
            raise InputError(
                f"level - gap - width must be at least 0, level + width at most 1 and both gap and "
                f"width above 0; got level {level!r}, gap {gap!r} and width {width!r}."
            )
        self.comparator = "expected"
        means = np.full(self.arms, float(level))
        means[0] -= gap
        self._params = NarrowParams(np.rint(means * UNITS), float(np.rint(width * UNITS)))

    def params(self) -> NarrowParams:
        """Return means and width, in grid units."""
        return self._params

    def arm_totals(self, stops: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each arm's expected total loss before each of the given rounds."""
        return stops[:, np.newaxis] * self._params.means[np.newaxis, :] / UNITS


@step
def _sum_losses(
    params: NarrowParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    rounds = stop - start
    above = binomial(stream, rounds, 0.5)
    return rounds * int(params.means[arm]) + (2 * above - rounds) * int(params.width)


register(NarrowParams, _sum_losses)


class LeakageInstance(Segments):
    """The paper's two neighbouring sequences on which EXP3 without noise gives itself away.

    All losses are 1, except that the second arm's first loss is 0 unless ``neighbour`` is set.

    Parameters
    ----------
    rounds
        Number of rounds T, at least 2.
    neighbour
        Take the neighbouring sequence.
    """

    name = "leakage"

    def __init__(self, rounds: int, neighbour: bool = False) -> None:
        rounds = checks.whole("rounds", rounds, 2, checks.MAX_ROUNDS)
        super().__init__([[1.0, 1.0 if neighbour else 0.0], [1.0, 1.0]], [1, rounds - 1])


for _world in (CommonEffects, Novelty, Waking, Narrow):
    register_name(_world.name, _world)
