"""Charts of what reproductions measured."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import numpy as np
from altair.typing import ChartType

from bandanna._core.types import JSON
from bandanna.report.charts import chart_values
from bandanna.report.style import BLUE, GREEN, ORANGE, by_algorithm, logarithmic
from research.exp3_leakage import Leakage
from research.figures import Figure
from research.regime_map import RegimeCell, RegimeMap

PALETTE = ("#56B4E9", GREEN, "#F0E442", ORANGE, "#CC79A7", BLUE, "#E69F00", "#000000")
GREY = "#E3E3E3"
NOTHING = "nothing guaranteed"
POINTS = 400


def figure_chart(figure: Figure | Leakage | RegimeMap) -> ChartType:
    """Draw what a reproduction measured."""
    if isinstance(figure, RegimeMap):
        return regimes_chart(figure)
    return leakage_chart(figure) if isinstance(figure, Leakage) else points_chart(figure)


def points_chart(figure: Figure) -> ChartType:
    """Draw points with 95% intervals on logarithmic axes, a panel and a line for each series."""
    looks = by_algorithm((point.series for point in figure.points), "series")
    panels = []
    for panel in dict.fromkeys(point.panel for point in figure.points):
        chosen = [point for point in figure.points if point.panel == panel]
        x = logarithmic(figure.x or panel, "x", (point.x for point in chosen))
        rows = chart_values([point._asdict() for point in chosen])
        base = alt.Chart(rows).encode(x=x, color=looks["color"])
        scale = alt.Scale(type="log", nice=False, padding=12)
        style = "~g" if min(point.y for point in chosen) < 1 else "~s"
        y = alt.Y("y:Q", title=figure.y, scale=scale, axis=alt.Axis(format=style, tickCount=6))
        line = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=looks["strokeDash"])
        points = base.mark_point(filled=True, size=55, opacity=1).encode(
            y=y, tooltip=["series:N", "x:Q", alt.Tooltip("y:Q", format=",.4r")]
        )
        bars = base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", title=figure.y), y2="high:Q")
        heading = panel if figure.x else ""
        panels.append((line + bars + points).properties(width=300, height=240, title=heading))
    chart = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=3)
    title = alt.Title(figure.title, anchor="start", offset=12)
    titled = chart.properties(title=title)
    finished: ChartType = titled.configure_axis(gridOpacity=0.45, titleFontWeight="normal")
    return finished


def leakage_chart(leakage: Leakage) -> ChartType:
    """Draw the paper's figure: the second arm's probability on both sequences, and the loss."""
    rounds = leakage.first.size
    drawn = np.unique(np.linspace(0, rounds - 1, POINTS).astype(int))
    rows = [
        {"round": int(t) + 1, "losses": name, "probability": float(curve[t])}
        for name, curve in (("P(2) on l", leakage.first), ("P'(2) on l'", leakage.second))
        for t in drawn
    ]
    probabilities = (
        alt.Chart(chart_values(rows), title="Probability of arm 2 under EXP3")
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("round:Q", title="round t"),
            y=alt.Y("probability:Q", title="probability", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("losses:N", title=None, scale=alt.Scale(range=[BLUE, ORANGE])),
            strokeDash=alt.StrokeDash("losses:N", legend=None),
            tooltip=["losses:N", "round:Q", alt.Tooltip("probability:Q", format=".5f")],
        )
        .properties(width=520, height=260)
    )
    logs = np.unique(np.geomspace(2, rounds, POINTS).astype(int)) - 1
    losses = [{"round": int(t) + 1, "loss": float(leakage.per_round[t])} for t in logs]
    loss = (
        alt.Chart(chart_values(losses), title="Privacy loss of round t alone")
        .mark_line(strokeWidth=2.5, color=GREEN)
        .encode(
            x=alt.X("round:Q", title="round t", scale=alt.Scale(type="log"), axis=_decades(0, 6)),
            y=alt.Y(
                "loss:Q",
                title="epsilon of the round",
                scale=alt.Scale(type="log"),
                axis=_decades(-5, 1),
            ),
            tooltip=["round:Q", alt.Tooltip("loss:Q", format=".5g")],
        )
        .properties(width=520, height=220)
    )
    both: ChartType = alt.vconcat(probabilities, loss).resolve_scale(color="independent")
    return both


def regimes_chart(regimes: RegimeMap) -> ChartType:
    """Draw which algorithm is best over T and epsilon: by rate, and by numeric guarantee."""
    questions: dict[str, Callable[[RegimeCell], str | None]] = {
        "by the paper's rates": lambda cell: cell.by_rate,
        "the paper's three, in numbers": lambda cell: cell.papers_best,
        "all, in numbers": lambda cell: cell.best,
    }
    tiles = [
        {
            "question": question,
            "experts": f"N = {cell.problem.experts:,} (N/K = {cell.ratio:g})",
            "best": choose(cell) or NOTHING,
            "share": min(cell.shares.values()),
            **_around("rounds", cell.problem.horizon("a chart")),
            **_around("epsilon", cell.problem.epsilon),
        }
        for question, choose in questions.items()
        for cell in regimes.cells
    ]
    names = sorted({str(tile["best"]) for tile in tiles} - {NOTHING})
    chart = (
        alt.Chart(chart_values(tiles))
        .mark_rect()
        .encode(
            x=alt.X(**_log_tiles("rounds", "rounds T", 3, 12)),
            x2="rounds_end:Q",
            y=alt.Y(**_log_tiles("epsilon", "epsilon", -6, 0)),
            y2="epsilon_end:Q",
            color=alt.Color(
                "best:N",
                title="smallest regret",
                scale=alt.Scale(domain=[*names, NOTHING], range=[*PALETTE[: len(names)], GREY]),
                legend=alt.Legend(orient="bottom", columns=4, labelLimit=260),
            ),
            tooltip=[
                alt.Tooltip("best:N", title="best"),
                alt.Tooltip("rounds:Q", title="T", format=".3g"),
                alt.Tooltip("epsilon:Q", title="epsilon", format=".3g"),
                alt.Tooltip("share:Q", title="least guarantee, of T", format=".3g"),
            ],
        )
        .properties(width=190, height=140)
    )
    title = alt.Title(
        f"Which algorithm with expert advice has the smallest regret, K = {regimes.arms:,} arms",
        subtitle=f"Top: rates without constants and logarithms. Below: guarantees as numbers, "
        f"delta = {regimes.delta:g}. Grey: the smallest is above T.",
        anchor="start",
        offset=12,
    )
    facets: ChartType = chart.facet(
        row=alt.Row("question:N", title=None, sort=list(questions)),
        column=alt.Column(
            "experts:N",
            title=None,
            sort=list(dict.fromkeys(str(tile["experts"]) for tile in tiles)),
        ),
    ).properties(title=title)
    return facets


def _decades(low: int, high: int) -> alt.Axis:
    """Mark powers of ten only."""
    return alt.Axis(values=[10.0**power for power in range(low, high + 1)])


def _around(name: str, value: float) -> dict[str, float]:
    """Return the ends of a tile half a decade wide, and the value in its middle."""
    half = 10**0.25
    return {name: value, f"{name}_start": value / half, f"{name}_end": value * half}


def _log_tiles(name: str, title: str, low: int, high: int) -> JSON:
    powers = [10.0**power for power in range(low, high + 1, 3)]
    ends = [10 ** (low - 0.25), 10 ** (high + 0.25)]
    return {
        "shorthand": f"{name}_start:Q",
        "title": title,
        "scale": alt.Scale(type="log", domain=ends, nice=False),
        "axis": alt.Axis(values=powers, format=".0e", grid=False),
    }
