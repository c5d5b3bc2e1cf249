"""``bandanna plan`` for losses like people's own: by gap and base rate, or by a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import bandanna as bd
from bandanna._core.types import InputError

if TYPE_CHECKING:
    from bandanna.simulation.forecast import Forecast

HELD = 0.99
"""Share of a log's outcomes that a narrower range would hold."""

WORTH_SAYING = 0.1
RANGE_RUNS = 40


USUAL_GAP, USUAL_RATE = 0.1, 0.5
"""What is simulated where nothing was said of losses."""


def look_ahead(
    problem: bd.Problem,
    gap: float | None,
    base_rate: float | None,
    log: bd.environments.Logged | None,
    **asked: Any,
) -> Forecast:
    """Say what to expect on a log, or where one arm succeeds more often than all others."""
    from bandanna.simulation.comparators import least_regret
    from bandanna.simulation.forecast import QUICK, forecast

    world, unit = "", "successes"
    if log is not None:
        if (gap, base_rate) != (None, None):
            raise InputError("give either a log or --gap and --base-rate.")
        unit = log.outcome
    elif gap is None and base_rate is None:
        asked["most_seconds"] = QUICK
        gap, base_rate = USUAL_GAP, USUAL_RATE
        world = (
            f"Simulated where one arm succeeds in {base_rate + gap:.0%} of rounds and the others "
            f"in {base_rate:.0%}; say what yours do with --gap and --base-rate, or give a log."
        )
    make = _by_rates(problem.arms, gap, base_rate) if log is None else log.environment
    ahead = forecast(problem, make, unit=unit, **asked)
    least = least_regret(make(ahead.rounds), problem.epsilon)
    advice = "" if log is None else _range_advice(problem, log, ahead)
    return replace(ahead, least_private=least, world=world, range_advice=advice)


def _by_rates(
    arms: int, gap: float | None, base_rate: float | None
) -> Callable[[int], bd.environments.Environment]:
    """Return what makes rounds in which all arms have one success rate, but one by a gap."""
    if gap is None or base_rate is None:
        raise InputError("--gap and --base-rate go together, such as --gap 0.02 --base-rate 0.05.")
    if not (gap > 0.0 and base_rate >= 0.0 and base_rate + gap <= 1.0):
        raise InputError(
            f"--base-rate is how often the usual arm succeeds and --gap how much better the best "
            f"is, together at most 1; got {base_rate:g} and {gap:g}."
        )
    usual = 1.0 - base_rate
    return partial(bd.environments.Bernoulli, [usual - gap, *[usual] * (arms - 1)])


def _range_advice(problem: bd.Problem, log: bd.environments.Logged, found: Forecast) -> str:
    """Say what share of the regret a range costs that is wider than nearly all outcomes need."""
    import numpy as np

    from bandanna._core.grid import UNITS
    from bandanna.simulation.baselines import make_policy

    tail = (1.0 - HELD) / 2.0
    low, high = np.quantile(log.log.units, (tail, 1.0 - tail))
    if high <= low:
        return ""
    scaled = np.clip((log.log.units - low) / (high - low), 0.0, 1.0)
    start, span = log.loss_range[0], log.span / UNITS
    narrow = replace(
        log.log,
        units=np.rint(scaled * UNITS).astype(np.int64),
        loss_range=(start + low * span, start + high * span),
    )
    environment = log.of(narrow).environment(found.rounds)
    policy = make_policy(found.best, problem, loss_range=environment.loss_range)
    results = bd.simulate(policy, environment, replicates=RANGE_RUNS)
    before = next(row.regret for row in found.rows if row.algorithm == found.best)
    saved = 1.0 - float(results.regret("policy").mean()) * 1000.0 / found.rounds / before
    if saved < WORTH_SAYING:
        return ""
    return (
        f"About {saved:.0%} of that regret is the price of a wide --range: one that holds just "
        f"{HELD:.0%} of such outcomes, with the rest clipped, would save it. Choose a range from "
        f"what is public, or buy one from the same people with bd.private_range(values, epsilon); "
        f"not by looking at their outcomes."
    )
