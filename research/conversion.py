"""Theorem "Generic Conversion": larger batches have less noise, and there are fewer of them."""

from __future__ import annotations

import math

import numpy as np

from bandanna._core.types import JSON
from bandanna.policy import PrivateBandit
from bandanna.studies.figures import fit_slope
from research import Reproduction, Verdict, frozen_settings
from research.figures import Figure, Point
from research.rates import Measured, worst_regret


def reproduce(quick: bool) -> Reproduction:
    """Sweep the batch around 1/eps for several epsilons and find the best by a parabola."""
    settings = frozen_settings("conversion", quick)
    rows, drawn, verdicts = [], [], []
    best = {}
    for epsilon in settings["epsilon"]:
        points = [
            (batch, _worst(epsilon, batch, settings))
            for batch in sorted({max(1, round(m / epsilon)) for m in settings["multiples"]})
        ]
        for batch, found in points:
            low, high = found.interval
            cells = [f"{epsilon:g}", f"{batch:,}", f"{batch * epsilon:.3g}"]
            rows.append([*cells, f"{found.mean:,.0f}", f"{found.error:,.0f}"])
            series = "", f"epsilon {epsilon:g}", batch * epsilon
            drawn.append(Point(*series, found.mean, max(low, 1.0), high))
        best[epsilon] = _lowest(points)
        factor = settings["factor"]
        times = best[epsilon] * epsilon
        verdicts.append(
            Verdict(
                f"epsilon {epsilon:g}: the best batch is near 1/eps = {1 / epsilon:,.0f}",
                f"{best[epsilon]:,.1f}, which is {times:.2f}/eps",
                f"a factor of {factor:g}",
                1 / factor <= times <= factor,
            )
        )
    slope = fit_slope(list(best), list(best.values()), [0.1 * tau for tau in best.values()])
    assert slope is not None
    verdicts.append(
        Verdict(
            "the best batch grows as eps^-1",
            f"exponent {slope.value:.2f}",
            f"{settings['tolerance']:g}",
            abs(slope.value + 1.0) <= settings["tolerance"],
        )
    )
    return Reproduction(
        name="conversion",
        claim="batches trade noise against the number of releases; near 1/eps is best (HTINF)",
        headings=["epsilon", "batch", "times eps", "regret", "s.e."],
        rows=rows,
        verdicts=verdicts,
        settings=settings,
        figure=Figure("Worst regret of the conversion", "batch, times epsilon", "regret", drawn),
    )


def _worst(epsilon: float, batch: int, settings: JSON) -> Measured:
    rounds = round(settings["releases"] / epsilon)
    policy = PrivateBandit(settings["arms"], epsilon, rounds, "htinf", batch=batch)
    runs, seed = settings["replicates"], settings["seed"]
    return worst_regret(policy, rounds, epsilon, settings["gaps"], runs, seed)


def _lowest(points: list[tuple[int, Measured]]) -> float:
    """Return where a parabola through the points, on logarithmic axes, is lowest."""
    across = np.log([batch for batch, _ in points])
    up = np.log([found.mean for _, found in points])
    weights = [found.mean / max(found.error, 1e-9) for _, found in points]
    bend, tilt, _ = np.polyfit(across, up, 2, w=weights)
    lowest = -tilt / (2 * bend) if bend > 0 else across[int(np.argmin(up))]
    return math.exp(float(np.clip(lowest, across[0], across[-1])))
