"""Draw what probing costs and saves: ``python -m docs.frontier docs/images/frontier.svg``.

Plays the default with more and more of ``Phased.premium``, and without probes, in two worlds at
each size: a steady one, and one in which an arm that nobody plays becomes the best.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import altair as alt
import numpy as np
from altair.typing import ChartType
from research.worlds import Waking

import bandanna as bd
from bandanna._core.types import JSON
from bandanna.environments import Environment, Segments
from bandanna.learners import Phased
from bandanna.policy import Policy
from bandanna.report.charts import save_chart
from bandanna.report.style import BLACK, BLUE, GREEN, ORANGE, PURPLE

SIZES = [(2, 5_000, 1.0), (5, 20_000, 0.5), (10, 200_000, 0.1), (20, 500_000, 0.5)]
PREMIUMS = (0.05, 0.1, 0.2, 0.4, 0.8)
WITHOUT = "without"
GAP, WAKES, BY = 0.05, 0.4, 0.25
COLOURS = [BLUE, ORANGE, GREEN, PURPLE]
DASHES = [[1, 0], [8, 3], [2, 3], [10, 3, 2, 3]]
WIDTH, HEIGHT = 300, 300


def with_premium(arms: int, epsilon: float, rounds: int, premium: float) -> Policy:
    """Return the default with another premium."""
    policy = bd.PrivateBandit(arms, epsilon, rounds)
    learner = policy.recipe.learner
    assert isinstance(learner, Phased)
    recipe = policy.recipe._replace(learner=replace(learner, premium=premium))
    return Policy(policy.spec, recipe)


def worlds(arms: int, rounds: int) -> tuple[Environment, Environment]:
    """Return steady arms, and the same with an arm that wakes."""
    means = np.full((1, arms), 0.5)
    means[0, 0] -= GAP
    steady = Segments(means, [rounds], bernoulli=True)
    return steady, Waking(arms, rounds, gap=GAP, wakes=WAKES, by=BY)


def measured(runs: int) -> list[JSON]:
    """Return, for every size and premium, regret in both worlds over that without probes."""
    rows: list[JSON] = []
    for arms, rounds, epsilon in SIZES:
        policies: dict[str, Policy] = {
            WITHOUT: bd.PrivateBandit(arms, epsilon, rounds, losses="steady")
        }
        own = bd.PrivateBandit(arms, epsilon, rounds).recipe.learner
        assert isinstance(own, Phased)
        for premium in sorted({*PREMIUMS, own.premium}):
            policies[f"{premium:g}"] = with_premium(arms, epsilon, rounds, premium)
        means = [
            {name: _mean(found, name) for name in policies}
            for found in (
                bd.simulate(policies, world, replicates=runs, checkpoints=1, progress=False)
                for world in worlds(arms, rounds)
            )
        ]
        size = f"{arms} arms, {rounds:,} rounds, epsilon {epsilon:g}"
        print(f"\n{size}: premium, regret in a steady world, where an arm wakes (s.e.)")
        for place, name in enumerate(policies):
            (cost, error), (saved, other) = (each[name] for each in means)
            print(f"{name:>8} {cost:>10,.0f} ({error:,.0f}) {saved:>10,.0f} ({other:,.0f})")
            rows.append(
                {
                    "size": size,
                    "place": place,
                    "chosen": name == f"{own.premium:g}",
                    "cost": cost / means[0][WITHOUT][0],
                    "left": saved / means[1][WITHOUT][0],
                }
            )
    return rows


def _mean(found: bd.Results, name: str) -> tuple[float, float]:
    regret = found.regret(name)
    return float(regret.mean()), float(regret.std(ddof=1)) / math.sqrt(regret.size)


def chart(rows: list[JSON]) -> ChartType:
    """Draw a line for each size, from no probes to many; rings are what the default does."""
    sizes = list(dict.fromkeys(str(row["size"]) for row in rows))
    legend = alt.Legend(
        orient="bottom",
        columns=1,
        labelFontSize=13,
        labelLimit=WIDTH,
        symbolType="stroke",
        symbolSize=500,
        symbolStrokeWidth=2.5,
    )
    shared: JSON = {"title": None, "sort": sizes, "legend": legend}
    axis: JSON = {"labelFontSize": 13, "titleFontSize": 13, "tickCount": 5}
    x = alt.X(
        "cost:Q",
        title="steady regret, times that without probes",
        scale=alt.Scale(zero=False, nice=True),
        axis=alt.Axis(**axis),
    )
    y = alt.Y(
        "left:Q",
        title="regret where an arm wakes, of that without",
        axis=alt.Axis(format="%", **axis),
    )
    base = alt.Chart(alt.Data(values=rows)).encode(  # type: ignore[no-untyped-call]
        x=x,
        y=y,
        color=alt.Color("size:N", scale=alt.Scale(domain=sizes, range=COLOURS), **shared),
    )
    dash = alt.StrokeDash("size:N", scale=alt.Scale(domain=sizes, range=DASHES), **shared)
    line = base.mark_line(strokeWidth=2.2).encode(strokeDash=dash, order=alt.Order("place:O"))
    points = base.mark_point(filled=True, size=35, opacity=1)
    chosen = alt.Data(values=[row for row in rows if row["chosen"]])  # type: ignore[no-untyped-call]
    ring = alt.Chart(chosen).encode(x=x, y=y).mark_point(size=220, strokeWidth=2.5, color=BLACK)
    title = alt.Title(
        "What probing costs, and what it saves",
        subtitle="Rings: the default. Left: neither probes nor a net.",
        anchor="start",
        fontSize=15,
        subtitleFontSize=13,
    )
    return alt.layer(line, points, ring).properties(width=WIDTH, height=HEIGHT, title=title)


def main() -> None:
    """Measure, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("image", type=Path)
    parser.add_argument("--runs", type=int, default=200)
    given = parser.parse_args()
    save_chart(chart(measured(given.runs)), given.image)


if __name__ == "__main__":
    main()
