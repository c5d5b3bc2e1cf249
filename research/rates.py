"""How regret grows with T, epsilon and K (Corollary "FTRL Conversion"): fitted exponents.

Regret is measured where learning is hardest, at the worst of several gaps (``worst_regret``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from bandanna._core.types import JSON
from bandanna.environments import Bernoulli
from bandanna.policy import Policy, PrivateBandit
from bandanna.simulation.results import statistics
from bandanna.simulation.runs import simulate
from bandanna.studies.figures import fit_slope
from research import Reproduction, Verdict, frozen_settings
from research.figures import Figure, Point


class Measured(NamedTuple):
    """A mean over runs and its standard error."""

    mean: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """A 95% confidence interval."""
        return self.mean - 1.96 * self.error, self.mean + 1.96 * self.error


def measure(policy: Policy, environment: object, replicates: int, seed: int) -> Measured:
    """Return a policy's mean regret in an environment."""
    runs = simulate(policy, environment, replicates=replicates, seed=seed, checkpoints=1)
    found = statistics(runs.regret("policy"))
    return Measured(found["mean"], found["standard_error"])


def worst_regret(
    policy: Policy,
    rounds: int,
    epsilon: float,
    gaps: Sequence[float],
    replicates: int,
    seed: int,
) -> Measured:
    """Return the largest mean regret over Bernoulli arms of which one is better.

    Neither an obvious nor an imperceptible best arm is hard; the gap that is hardest for a policy
    of ``epsilon T`` useful releases is a multiple of ``sqrt(K / (epsilon T))``.
    """
    arms = len(policy.arms)
    unit = math.sqrt(arms / (min(epsilon, 1.0) * rounds))
    found = [
        measure(policy, Bernoulli(arms, rounds, gap=min(1.0, gap * unit)), replicates, seed)
        for gap in gaps
    ]
    return max(found, key=lambda one: one.mean)


CLAIMED = {"rounds": 0.5, "epsilon": -0.5, "arms": 0.5}
SYMBOLS = {"rounds": "T", "epsilon": "eps", "arms": "K"}


def reproduce(quick: bool) -> Reproduction:
    """Vary one of T, epsilon and K at a time and fit a power to the worst regret."""
    settings = frozen_settings("rates", quick)
    rows, drawn, verdicts = [], [], []
    for axis, claimed in CLAIMED.items():
        sweep = settings[axis]
        for algorithm in settings["algorithms"]:
            points = {
                value: _worst(algorithm, {**sweep["at"], axis: value}, settings | sweep)
                for value in sweep["values"]
            }
            slope = fit_slope(
                points,
                [found.mean for found in points.values()],
                [found.error for found in points.values()],
            )
            assert slope is not None
            for value, found in points.items():
                drawn.append(Point(SYMBOLS[axis], algorithm, value, found.mean, *found.interval))
                cells = [algorithm, SYMBOLS[axis], f"{value:,}", f"{found.mean:,.0f}"]
                rows.append([*cells, f"{found.error:,.0f}"])
            allowed, widest = sweep["tolerance"], settings["widest"]
            near = slope.low <= claimed + allowed and slope.high >= claimed - allowed
            verdicts.append(
                Verdict(
                    f"{algorithm}: regret grows as {SYMBOLS[axis]}^{claimed:g}",
                    f"exponent {slope.value:.2f}, 95% interval {slope.low:.2f} to {slope.high:.2f}",
                    f"the interval comes within {allowed:g} and is no wider than {widest:g}",
                    near and slope.high - slope.low <= widest,
                )
            )
    return Reproduction(
        name="rates",
        claim="regret grows as T^1/2, eps^-1/2 and K^1/2 (worst of several gaps)",
        headings=["algorithm", "varied", "value", "regret", "s.e."],
        rows=rows,
        verdicts=verdicts,
        settings=settings,
        figure=Figure("Worst regret, one parameter varied at a time", "", "regret", drawn),
    )


def _worst(algorithm: str, setting: JSON, settings: JSON) -> Measured:
    arms, rounds, epsilon = setting["arms"], setting["rounds"], setting["epsilon"]
    policy = PrivateBandit(arms, epsilon, rounds, algorithm)
    runs, seed = settings["replicates"], settings["seed"]
    return worst_regret(policy, rounds, epsilon, settings["gaps"], runs, seed)
