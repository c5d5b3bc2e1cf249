"""Every arm of a finished log against the control: differences, and lifts by Fieller's interval."""

from __future__ import annotations

from collections.abc import Sequence

from bandanna._core.types import ArmName
from bandanna.one_look import FEWEST, OneLook, Term, proved_radius, statistic
from bandanna.policy.statements import Units
from bandanna.scorecard.lift import Lift, fieller
from bandanna.scorecard.recommend import effect_of
from bandanna.scorecard.view import Effect, Goal, Metric


def metric_of(
    names: Sequence[ArmName],
    look: OneLook,
    units: Units,
    control: int,
    alpha: float,
    *,
    goal: Goal,
    limit: float | None,
    note: str = "",
    lifts: bool,
) -> Metric:
    """Return one outcome of every arm, the control first.

    ``alpha`` is the error probability of each difference, and of each lift. Without ``lifts`` the
    means are not of the outcome itself, so their ratio would say nothing.
    """
    times = 100 if look.binary and units.low == 0.0 else 1
    shell = Metric(units.name, (), units.per, times, goal, limit, note)

    def effect(arm: int) -> Effect:
        one, base = look.arms[arm], look.arms[control]
        size = round(one.size)
        mean = units.value(min(max(one.mean, 0.0), 1.0)) if size else None
        if arm == control:
            return Effect(names[arm], size, mean, verdict="control")
        if not size or not base.size:
            return Effect(names[arm], size, mean)
        apart = units.difference(*look.between(control, arm, alpha))
        lift = lift_of(look, units, arm, control, alpha) if lifts else None
        return effect_of(shell, names[arm], size, mean, apart, lift)

    arms = [control, *(arm for arm in range(len(names)) if arm != control)]
    return shell.with_effects([effect(arm) for arm in arms])


def lift_of(look: OneLook, units: Units, arm: int, control: int, alpha: float) -> Lift | None:
    """Return how much larger an arm's mean is than the control's, as a share of it."""
    one, base = look.arms[arm], look.arms[control]
    if min(one.size, base.size) < FEWEST:
        return None

    def radius(terms: Sequence[Term]) -> float:
        if look.kind == "proved":
            return units.width * proved_radius(terms, alpha)
        return units.width * statistic(terms).radius(alpha)

    least = -1.0 if units.low >= 0.0 else None
    relative = fieller(
        units.value(one.mean),
        units.value(base.mean),
        lambda ratio: radius([Term(1.0, one), Term(-ratio, base)]),
        radius([Term(1.0, base)]),
    )
    if relative is None or least is None:
        return relative
    return Lift(*(max(end, least) for end in relative))
