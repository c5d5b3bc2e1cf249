"""Ratio metrics of a finished log, such as revenue per visit: two clipped sums a unit.

An arm's ratio is the sum of one column over the sum of another. Both vary, and together, so
everything an interval needs of both is released once (``bandanna.privacy.ratio``). A ratio ``r`` is
refuted where the mean of ``top - r bottom`` is further from 0 than chance and noise explain: that
is Fieller's interval. Two arms' intervals are put together by squaring and adding how far each may
be on the side that matters (Donner and Zou 2012).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS, LossRange, check_range
from bandanna._core.types import JSON, ArmName, Guarantee, InputError
from bandanna.counted import squares_of
from bandanna.environments.frames import read_columns
from bandanna.environments.log import Log, as_numbers, read_log
from bandanna.environments.returning import slots_of
from bandanna.inference import Interval
from bandanna.logs.answers import how_made, met_once, protected_in_log
from bandanna.logs.rows import mixed_in
from bandanna.one_look import FEWEST, Arm, Kind, radius
from bandanna.policy.answers import index_of
from bandanna.policy.statements import AT_RANDOM, Units
from bandanna.privacy.certificate import OF_LOGS, Setting, make_certificate
from bandanna.privacy.ratio import RatioRelease, RatioSums, ratio_scale
from bandanna.privacy.statements import PUBLIC_ROWS, assumed_by_all
from bandanna.scorecard.health import sample_ratio
from bandanna.scorecard.lift import Lift, fieller
from bandanna.scorecard.recommend import effect_of
from bandanna.scorecard.view import Check, Effect, Goal, Metric
from bandanna.warehouse import Exposures, Table

Floats = NDArray[np.float64]


class RatioArm(NamedTuple):
    """What was released of one arm; both outcomes are in [0, 1]."""

    top: Arm
    bottom: Arm
    product: float
    """Mean product of both, each around 1/2, with noise."""

    @property
    def size(self) -> float:
        """How many units: public."""
        return self.top.size

    @property
    def covariance(self) -> float:
        """An estimate of how both vary together."""
        apart = self.product - (self.top.mean - 0.5) * (self.bottom.mean - 0.5)
        return apart * self.size / max(self.size - 1.0, 1.0)

    @property
    def blur(self) -> float:
        """The standard deviation of the noise in ``covariance``."""
        tilts = [min(abs(arm.mean - 0.5), 0.5) for arm in (self.top, self.bottom)]
        return math.sqrt(2.0 * (1.0 + tilts[0] ** 2 + tilts[1] ** 2)) * self.top.scale / self.size


@dataclass(frozen=True)
class RatioLook:
    """Ratios of arms, and intervals of them and of how they differ."""

    arms: tuple[RatioArm, ...]
    top: LossRange
    bottom: LossRange

    def means(self, arm: int) -> tuple[float, float]:
        """Return both means of an arm, in the user's units."""
        one = self.arms[arm]
        return _value(one.top.mean, self.top), _value(one.bottom.mean, self.bottom)

    def ratio(self, arm: int) -> float:
        """Return an arm's ratio."""
        over, under = self.means(arm)
        return over / under

    def _variance(self, one: RatioArm, r: float) -> tuple[float, float]:
        """Return the variance of ``top - r bottom`` between units, and its noise."""
        wide, across = self.top[1] - self.top[0], r * (self.bottom[1] - self.bottom[0])
        own = wide**2 * one.top.variance + across**2 * one.bottom.variance
        own -= 2.0 * wide * across * one.covariance
        parts = wide**2 * one.top.blur, across**2 * one.bottom.blur, 2 * wide * across * one.blur
        return own, math.hypot(*parts)

    def radius(self, arm: int, others: Sequence[int], r: float, alpha: float) -> float:
        """Return how far the mean of ``top - r bottom`` is from the truth, at most.

        Its variance is the larger of the arm's own and the one it has in common with ``others``.
        """
        one = self.arms[arm]
        own, blur = self._variance(one, r)
        every = [self.arms[k] for k in (arm, *others)]
        variances = [self._variance(each, r) for each in every]
        people = sum(each.size for each in every)
        shares = [each.size / people for each in every]
        common = sum(share * each[0] for share, each in zip(shares, variances, strict=True))
        common += math.hypot(
            *(share * each[1] for share, each in zip(shares, variances, strict=True))
        )
        wide, across = self.top[1] - self.top[0], abs(r) * (self.bottom[1] - self.bottom[0])
        variance = min(max(own + blur, common, 0.0), (wide + across) ** 2 / 4.0)
        scale = one.top.scale / one.size
        noises = ((wide * scale, 1.0), (across * scale, 1.0))
        return radius(variance / one.size, noises, max(one.size - 1.0, 1.0), alpha)

    def interval(self, arm: int, others: Sequence[int], alpha: float) -> Interval | None:
        """Return Fieller's interval of an arm's ratio; None where its divisor may be 0."""
        if self.arms[arm].size < FEWEST:
            return None
        over, under = self.means(arm)
        unit = (self.top[1] - self.top[0]) / (self.bottom[1] - self.bottom[0])
        if over and under:
            unit = abs(over / under)  # so that what is searched for is about 1
        relative = fieller(
            over / unit,
            under,
            lambda r: self.radius(arm, others, r * unit, alpha) / unit,
            self._bottom_radius(arm, others, alpha),
        )
        if relative is None:
            return None
        return Interval(unit * (1.0 + relative.low), unit * (1.0 + relative.high))

    def _bottom_radius(self, arm: int, others: Sequence[int], alpha: float) -> float:
        """Return how far the mean of the divisor alone may be from the truth."""
        far = 1e6 * (self.top[1] - self.top[0]) / (self.bottom[1] - self.bottom[0])
        return self.radius(arm, others, far, alpha) / far

    def against(
        self, arm: int, control: int, alpha: float
    ) -> tuple[float, Interval, Lift | None] | None:
        """Return how an arm's ratio differs from the control's: apart, between what, and as a lift.

        None where a divisor may be 0.
        """
        mine, base = self.interval(arm, [control], alpha), self.interval(control, [arm], alpha)
        if mine is None or base is None:
            return None
        one, other = self.ratio(arm), self.ratio(control)
        apart = Interval(
            one - other - math.hypot(one - mine.low, base.high - other),
            one - other + math.hypot(mine.high - one, other - base.low),
        )
        lift = _lift_between(one, mine, other, base)
        return one - other, apart, lift


def _value(mean: float, ends: LossRange) -> float:
    """Return a mean in the user's units, no further than the range."""
    return ends[0] + (ends[1] - ends[0]) * min(max(mean, 0.0), 1.0)


def _lift_between(one: float, mine: Interval, other: float, base: Interval) -> Lift | None:
    """Return the lift of one estimate over another, from an interval of each."""
    if base.low <= 0.0 or other <= 0.0:
        return None

    def far(r: float) -> float:
        if one >= r * other:
            return math.hypot(one - mine.low, r * (base.high - other))
        return math.hypot(mine.high - one, r * (other - base.low))

    return fieller(one, other, far, other - base.low)


@dataclass(frozen=True)
class RatioAnswer:
    """The private answer about a ratio: every arm against the control."""

    names: tuple[ArmName, ...]
    look: RatioLook
    name: str
    per: str
    reward: bool
    confidence: float
    mixed: int
    guarantee: Guarantee
    certificate: JSON
    note: str
    interval: Kind = "normal"
    assumption: str = AT_RANDOM
    more: str = ""

    @property
    def protects(self) -> str:
        """What is protected."""
        return protected_in_log(self.per)

    @property
    def looks(self) -> str:
        """When it may be looked at, and how intervals are made."""
        return how_made(self.interval)

    def effects(
        self, control: ArmName, limit: float | None = None
    ) -> tuple[Metric, tuple[tuple[str, Metric], ...]]:
        """Return every arm against the control; a ratio has no groups."""
        against = index_of(self.names, control)
        alpha = (1.0 - self.confidence) / (len(self.names) - 1)
        goal: Goal = "more" if self.reward else "less"
        shell = Metric(self.name, (), self.per, 1, goal, limit, self.note, ratio=True)

        def effect(arm: int) -> Effect:
            size = round(self.look.arms[arm].size)
            known = self.look.interval(arm, [], alpha) is not None
            mean = self.look.ratio(arm) if known else None
            if arm == against:
                return Effect(self.names[arm], size, mean, verdict="control")
            compared = self.look.against(arm, against, alpha)
            if compared is None:
                return Effect(self.names[arm], size, mean)
            difference, ends, lift = compared
            return effect_of(shell, self.names[arm], size, mean, (difference, *ends), lift)

        order = [against, *(k for k in range(len(self.names)) if k != against)]
        return shell.with_effects([effect(k) for k in order]), ()

    def checks(self, shares: Mapping[ArmName, float] | None) -> tuple[Check, ...]:
        """Return what public counts say of how the experiment went."""
        sizes = [round(arm.size) for arm in self.look.arms]
        ratio = sample_ratio(self.names, sizes, shares, self.per)
        return (ratio, met_once(self.mixed, sum(sizes))) if self.per == "people" else (ratio,)


def answer_ratio(
    log: object,
    *,
    arm: str,
    ratio: str,
    epsilon: float,
    loss_range: LossRange,
    over_range: LossRange,
    reward: bool = False,
    person: str | None,
    confidence: float,
) -> RatioAnswer:
    """Answer how arms differ in a ratio of two columns, privately."""
    top, slash, bottom = ratio.rpartition("/")
    if not slash or not top or not bottom:
        raise InputError(
            f"a ratio is two columns, such as revenue/visits, each with its range; got {ratio!r}."
        )
    ends = check_range(loss_range), check_range(over_range)
    if ends[1][0] < 0.0:
        raise InputError(
            f"what is divided by must not be negative, so its range starts at 0 or above; got "
            f"{over_range!r} for {bottom!r}."
        )
    if isinstance(log, Exposures) or (isinstance(log, Table) and log.table is not None):
        raise InputError(
            "a ratio is added up from rows in memory: give a CSV or Parquet file, or a data frame "
            "such as a query brings back."
        )
    rows = log.place if isinstance(log, Table) else log
    wanted = [arm, top, bottom, *([] if person is None else [person])]
    rows = read_columns(rows, wanted)
    people = read_log(
        {**rows, ratio: np.zeros(len(rows[arm]))},
        arm=arm,
        outcome=ratio,
        loss_range=(0.0, 1.0),
        person=person,
    )
    unit, arms = _units_of(people)
    sums = [
        np.bincount(unit[unit >= 0], weights=_numbers(name, rows[name])[unit >= 0])
        for name in (top, bottom)
    ]
    y, x = (
        np.rint((np.clip(total, *one) - one[0]) / (one[1] - one[0]) * UNITS).astype(np.int64)
        for total, one in zip(sums, ends, strict=True)
    )
    release = RatioRelease(epsilon, max(2, arms.size), ends[1])
    released = [
        _released(release, y[arms == k], x[arms == k]) for k in range(len(people.arm_names))
    ]
    promise = release.guarantee()
    assumed = assumed_by_all(*ends[0], clip=True, slots=None)
    promise = promise.assuming(*assumed, PUBLIC_ROWS)
    setting = Setting(secrets.token_hex(8), OF_LOGS, len(released), None, *ends[0])
    return RatioAnswer(
        people.arm_names,
        RatioLook(tuple(released), *ends),
        ratio,
        "rows" if person is None else "people",
        reward,
        confidence,
        0 if person is None else mixed_in(people),
        promise,
        make_certificate(promise, setting),
        "; ".join(
            f"{name} {Units(*one, clip=True).counted}"
            for name, one in zip((top, bottom), ends, strict=True)
        ),
    )


def _released(release: RatioRelease, y: NDArray[np.int64], x: NDArray[np.int64]) -> RatioArm:
    """Release one arm's sums, once."""
    half, size = UNITS // 2, int(y.size)
    exact = RatioSums(
        int(y.sum()),
        int(squares_of(y).sum()),
        int(x.sum()),
        int(squares_of(x).sum()),
        int(((y - half) * (x - half) // UNITS).sum()),
    )
    sums = [one / UNITS for one in release.release(exact, size)]
    scale = ratio_scale(release.epsilon) / UNITS
    return RatioArm(
        Arm(float(size), sums[0], sums[1], scale),
        Arm(float(size), sums[2], sums[3], scale),
        sums[4] / max(size, 1),
    )


def _units_of(log: Log) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which unit each row is added to, -1 for none, and each unit's arm.

    A person is one unit, with the arm that they met first.
    """
    if log.people is None:
        return np.arange(log.size), log.arms
    person, first = slots_of(log.people)
    met = log.arms[first]
    return np.where(log.arms == met[person], person, -1), met


def _numbers(name: str, values: NDArray[np.generic]) -> Floats:
    """Return a column as numbers; what is missing counts as 0."""
    numbers = as_numbers(values)
    if numbers is None:
        raise InputError(f"column {name!r} must hold numbers.")
    return np.nan_to_num(numbers, nan=0.0, posinf=1e300, neginf=-1e300)
