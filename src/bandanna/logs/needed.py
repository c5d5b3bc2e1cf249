"""How many rows would settle which arm is best, four times in five."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bandanna.inference import Interval
from bandanna.one_look import Arm, OneLook, Term, statistic

OFTEN = 0.8
MOST = 10_000.0
"""Times as many rows as there are; more are not looked for."""
DRAWS = 4_000


class Needed(NamedTuple):
    """How many rows would settle it, four times in five."""

    least: int | None
    """Hardly fewer, however the arms differ, with the answer's confidence."""
    about: int | None
    """If the arms differ as much as it looks now; None where that is hardly known."""

    def words(self, per: str) -> str:
        """Say it, or nothing."""
        least = "" if self.least is None else f"at least {_rounded(self.least):,}"
        if self.about is None:
            return least and f" It takes {least} {per} in all to settle it with 80% probability."
        also = least and f" ({least})"
        return (
            f" If the arms differ as much as it looks now, it takes about "
            f"{_rounded(self.about):,} {per} in all{also} to settle it with 80% probability."
        )


def _rounded(count: int) -> int:
    """Round to two digits: it is a guess."""
    return int(round(count, -max(0, len(str(count)) - 2)))


def rows_needed(
    look: OneLook,
    leader: int,
    base: int,
    apart: dict[int, Interval],
    level: float,
) -> Needed:
    """Return how many rows would settle it.

    Parameters
    ----------
    look
        What was released.
    leader
        The arm with the best released mean.
    base, apart
        The arm that others are compared with, and how they differ from it, at the joint confidence.
    level
        The error probability of each pair.
    """
    size = sum(arm.size for arm in look.arms)
    if look.kind == "exact":
        look = look._replace(kind="normal")  # close enough, and quick
    # The best arm is at most this far ahead of the next: so a pair that is settles first.
    most = max(
        min(interval.high for interval in apart.values()), *(-end.low for end in apart.values())
    )
    rivals = [k for k in (base, *apart) if k != leader]
    easiest = min(rivals, key=lambda k: statistic(_pair(look, leader, k)).variance)
    least = _times(look, leader, {easiest: most}, level)
    about, gaps = None, {k: look.apart(leader, k) for k in rivals}
    nearest = min(gaps, key=lambda k: gaps[k])
    if look.difference(leader, nearest, 2.0 * (1.0 - OFTEN)).low > 0.0:
        about = _times(look, leader, gaps, level)
    told = [None if times is None else round(times * size) for times in (least, about)]
    return Needed(told[0] if least is not None and least > 1.0 else None, told[1])


def _pair(look: OneLook, a: int, b: int) -> list[Term]:
    return [Term(-1.0, look.arms[a]), Term(1.0, look.arms[b])]


def _grown(arm: Arm, times: float) -> Arm:
    return arm._replace(size=arm.size * times, total=arm.total * times, square=arm.square * times)


def _times(look: OneLook, leader: int, gaps: dict[int, float], level: float) -> float | None:
    """Return how many times as many rows tell the leader from all others four times in five."""
    others = list(gaps)
    ahead = np.array([gaps[k] for k in others])
    if ahead.min() <= 0.0:
        return None
    errors = np.random.default_rng(0).standard_normal((DRAWS, len(others) + 1))
    nearest = others[int(ahead.argmin())]

    def power(times: float) -> float:
        arms = {k: _grown(look.arms[k], times) for k in (leader, *others)}
        sd = np.array([arms[k].deviation for k in (leader, *others)])
        drawn = errors * sd
        apart = ahead + drawn[:, 1:] - drawn[:, :1]
        grown = look._replace(arms=tuple(arms.get(k, arm) for k, arm in enumerate(look.arms)))
        interval = grown.difference(leader, nearest, level)
        one = grown.apart(leader, nearest) - interval.low
        both = np.hypot(sd[0], sd[1:])
        radius = one * both / both[others.index(nearest)]
        return float((apart > radius).all(axis=1).mean())

    return _least(lambda times: power(times) >= OFTEN)


def _least(settles: Callable[[float], bool]) -> float | None:
    low, high = 1e-3, MOST
    if not settles(high):
        return None
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if settles(middle) else (middle, high)
    return high
