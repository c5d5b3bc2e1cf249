"""``bandanna plan`` for losses like people's own: by gap and base rate, or by a log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bandanna._core.types import InputError

if TYPE_CHECKING:
    from bandanna.environments import Environment, Logged
    from bandanna.simulation.forecast import Forecast
    from bandanna.spec import Problem

HELD = 0.99
"""Share of a log's outcomes that a narrower range would hold."""

WORTH_SAYING = 0.1
RANGE_RUNS = 40


USUAL_GAP, USUAL_RATE = 0.1, 0.5
"""What is simulated where nothing was said of losses."""


def by_rates(
    problem: Problem, gap: float | None, base_rate: float | None, **asked: Any
) -> Forecast:
    """Say what to expect when all arms have one success rate and one is better by a gap."""
    from bandanna.simulation.comparators import least_regret
    from bandanna.simulation.forecast import QUICK, forecast

    world = ""
    if gap is None and base_rate is None:
        asked["most_seconds"] = QUICK
        gap, base_rate = USUAL_GAP, USUAL_RATE
        world = (
            f"Simulated where one arm succeeds in {base_rate + gap:.0%} of rounds and the others "
            f"in {base_rate:.0%}; say what yours do with --gap and --base-rate, or give a log."
        )
    if gap is None or base_rate is None:
        raise InputError("--gap and --base-rate go together, such as --gap 0.02 --base-rate 0.05.")
    if not (gap > 0.0 and base_rate >= 0.0 and base_rate + gap <= 1.0):
        raise InputError(
            f"--base-rate is how often the usual arm succeeds and --gap how much better the best "
            f"is, together at most 1; got {base_rate:g} and {gap:g}."
        )

    def make(rounds: int) -> Environment:
        from bandanna.environments import Bernoulli

        usual = 1.0 - base_rate
        return Bernoulli([usual - gap, *[usual] * (problem.arms - 1)], rounds)

    ahead = forecast(problem, make, unit="successes", **asked)
    least = least_regret(make(ahead.rounds), problem.epsilon)
    return replace(ahead, least_private=least, world=world)


def by_log(problem: Problem, log: Logged, **asked: Any) -> Forecast:
    """Say what to expect on a log, and whether its range is too wide."""
    from bandanna.simulation.comparators import least_regret
    from bandanna.simulation.forecast import forecast

    ahead = forecast(problem, log.environment, unit=log.outcome, **asked)
    least = least_regret(log.environment(ahead.rounds), problem.epsilon)
    advice = _range_advice(problem, log, ahead)
    return replace(ahead, least_private=least, range_advice=advice)


def _range_advice(problem: Problem, log: Logged, found: Forecast) -> str:
    """Say what share of the regret a range costs that is wider than nearly all outcomes need."""
    import numpy as np

    from bandanna._core.grid import UNITS
    from bandanna.simulation.baselines import make_policy
    from bandanna.simulation.runs import simulate

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
    results = simulate(policy, environment, replicates=RANGE_RUNS)
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
