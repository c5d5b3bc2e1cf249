"""Draw the three worlds: what losses look like, and what privacy costs there. ``make picture``."""

from __future__ import annotations

import sys
from pathlib import Path

import altair as alt
import numpy as np
from numpy.typing import NDArray
from research.algorithms import above_the_best_of_each_piece

import bandanna as bd
from bandanna._core.types import JSON
from bandanna.environments import Bernoulli, Environment, SinusoidalDrift, Switching
from bandanna.report.charts import save_chart
from bandanna.report.style import AMBER, ARMS, BLACK, BLUE, GREEN, ORANGE
from bandanna.simulation.baselines import strongest
from bandanna.spec import Losses

ROUNDS, RUNS, SEED = 200_000, 20, 1
EPSILONS = (0.03, 0.1, 0.3, 1.0)
CHOSEN, NO_PRIVACY = "chosen by losses=", "no privacy"
OTHERS = ("ab-test", "htinf", "ldp-exp3")
COLOURS = [GREEN, BLUE, ORANGE, AMBER, BLACK]
DASHES = [[1, 0], [1, 0], [8, 3], [2, 3], [1, 0]]
SHOWN = 60
"""Points of time in the upper pictures, and pieces that each have their best arm."""

MEANS = [0.4, 0.5, 0.5, 0.55, 0.6, 0.6]
WORLDS: dict[Losses, tuple[str, Environment]] = {
    "steady": ("each arm's distribution is fixed", Bernoulli(MEANS, ROUNDS)),
    "any": (
        "anything: here another arm becomes best",
        Switching(6, ROUNDS, gap=0.2, first=0.33, bernoulli=True),
    ),
    "changing": (
        "the best arm keeps changing",
        SinusoidalDrift(6, ROUNDS, gap=0.05, amplitude=0.3, period=ROUNDS / 2),
    ),
}


def mean_losses(environment: Environment) -> NDArray[np.float64]:
    """Return each arm's mean loss in each piece."""
    stops = np.linspace(0, ROUNDS, SHOWN + 1)[1:].astype(np.int64)
    each = np.diff(environment.arm_totals(stops), axis=0, prepend=0.0)
    found: NDArray[np.float64] = each * SHOWN / ROUNDS
    return found


def lost(losses: Losses, environment: Environment) -> list[dict[str, object]]:
    """Return what each algorithm loses against the best arm of the moment, in per cent."""
    above = above_the_best_of_each_piece(environment, SHOWN)
    policies: dict[tuple[str, float], bd.Policy] = {}
    for epsilon in EPSILONS:
        size = environment.arms, epsilon, ROUNDS
        policies[CHOSEN, epsilon] = bd.PrivateBandit(*size, losses=losses)
        policies |= {(name, epsilon): bd.PrivateBandit(*size, algorithm=name) for name in OTHERS}
    plain = strongest(environment, seed=SEED)
    named = {f"{name} {epsilon}": policy for (name, epsilon), policy in policies.items()}
    named |= {NO_PRIVACY: plain}
    runs = bd.simulate(named, environment, replicates=RUNS, seed=SEED, checkpoints=1)

    def share(name: str) -> float:
        return 100.0 * (float(runs.regret(name).mean()) + above) / ROUNDS

    found: list[dict[str, object]] = [
        {"algorithm": name, "epsilon": epsilon, "lost": share(f"{name} {epsilon}")}
        for name, epsilon in policies
    ]
    without = share(NO_PRIVACY)
    found += [{"algorithm": NO_PRIVACY, "epsilon": e, "lost": without} for e in EPSILONS]
    return found


def column(losses: Losses, words: str, environment: Environment) -> alt.VConcatChart:
    """Draw one world: its losses above, what is lost below."""
    arms = [
        {"arm": str(arm), "t": (piece + 0.5) / SHOWN, "loss": float(value)}
        for piece, row in enumerate(mean_losses(environment))
        for arm, value in enumerate(row)
    ]
    heading = alt.Title(f"losses={losses!r}", subtitle=words, fontSize=15, subtitleFontSize=12)
    above = (
        alt.Chart(alt.Data(values=arms), title=heading)  # type: ignore[no-untyped-call]
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("t:Q", title="time", axis=alt.Axis(labels=False, ticks=False, grid=False)),
            y=alt.Y("loss:Q", title="mean loss", scale=alt.Scale(domain=[0, 1])),
            stroke=alt.Stroke("arm:N", legend=None, scale=alt.Scale(range=ARMS)),
        )
        .properties(width=250, height=90)
    )
    rows = lost(losses, environment)
    names = [CHOSEN, *OTHERS, NO_PRIVACY]
    legend = alt.Legend(orient="bottom", symbolType="stroke", symbolSize=500, symbolStrokeWidth=2.5)
    shared: JSON = {"title": None, "sort": names, "legend": legend}
    colour = alt.Color("algorithm:N", scale=alt.Scale(domain=names, range=COLOURS), **shared)
    dash = alt.StrokeDash("algorithm:N", scale=alt.Scale(domain=names, range=DASHES), **shared)
    logs = alt.Scale(type="log", nice=False, padding=10)
    base = alt.Chart(alt.Data(values=rows)).encode(  # type: ignore[no-untyped-call]
        x=alt.X("epsilon:Q", title="epsilon", scale=logs, axis=alt.Axis(values=list(EPSILONS))),
        y=alt.Y(
            "lost:Q",
            title="lost to the best arm, % of rounds",
            scale=alt.Scale(type="log", domain=[0.05, 40]),
            axis=alt.Axis(values=[0.1, 0.3, 1, 3, 10, 30]),
        ),
        color=colour,
    )
    line = base.mark_line(strokeWidth=2.2).encode(strokeDash=dash)
    below = (line + base.mark_point(filled=True, size=40, opacity=1)).properties(
        width=250, height=220
    )
    both: alt.VConcatChart = alt.vconcat(above, below)
    return both


if __name__ == "__main__":
    columns = [column(losses, *world) for losses, world in WORLDS.items()]
    save_chart(alt.hconcat(*columns), Path(sys.argv[1]))
