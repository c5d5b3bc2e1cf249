"""Charts of simulation results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import altair as alt
import numpy as np
from altair.typing import ChartType

from bandanna._core.types import JSON, InputError
from bandanna.audits.leakage import Leakage
from bandanna.planner.regimes import RegimeCell, RegimeMap
from bandanna.report.style import (
    BLUE,
    GREEN,
    HEIGHT,
    ORANGE,
    WIDTH,
    by_algorithm,
    few_marks,
    logarithmic,
)
from bandanna.simulation.results import Results
from bandanna.studies.figures import Figure


class OfflineChart(alt.LayerChart):
    """A chart that notebooks show as a picture, so that nothing is loaded from a network."""

    def _repr_mimebundle_(self, *_: object, **__: object) -> dict[str, str]:
        import vl_convert

        svg = vl_convert.vegalite_to_svg(self.to_dict(), show_warnings=False)
        return {"image/svg+xml": svg, "text/plain": "<chart of regret over time>"}


def results_chart(results: Results) -> OfflineChart:
    """Draw every policy's mean regret as it grows, with a band in which nine runs of ten are."""
    rows = []
    for name in results.runs:
        curves = results.curves(name)
        low, high = np.quantile(curves, (0.05, 0.95), axis=0)
        for index, stop in enumerate(results.stops):
            ends = {"low": float(low[index]), "high": float(high[index])}
            mean = float(curves[:, index].mean())
            rows.append({"policy": name, "round": int(stop), "mean": mean, **ends})
    looks = by_algorithm(results.runs, "policy")
    data = alt.Data(values=rows)  # type: ignore[no-untyped-call]
    x = alt.X("round:Q", title="rounds played", axis=alt.Axis(format="~s", tickCount=6))
    base = alt.Chart(data).encode(x=x, color=looks["color"])
    band = base.mark_area(opacity=0.13).encode(y=alt.Y("low:Q", title="regret so far"), y2="high:Q")
    line = base.mark_line(strokeWidth=2.2).encode(
        y=alt.Y("mean:Q", title="regret so far", axis=few_marks()),
        strokeDash=looks["strokeDash"],
        tooltip=["policy:N", "round:Q", alt.Tooltip("mean:Q", format=",.4r")],
    )
    title = alt.Title(
        "Regret over time", subtitle="The mean, and a band with 90% of the runs", anchor="start"
    )
    return OfflineChart(layer=[band, line], width=WIDTH, height=HEIGHT, title=title)


PALETTE = ("#56B4E9", GREEN, "#F0E442", ORANGE, "#CC79A7", BLUE, "#E69F00", "#000000")
GREY = "#E3E3E3"
NOTHING = "nothing guaranteed"
FORMATS = (".html", ".svg", ".png", ".pdf")
POINTS = 400


def save_chart(chart: ChartType, path: Path) -> None:
    """Write a chart in the format its name asks for; HTML works offline."""
    check_chart(path)
    try:
        if path.suffix == ".html":
            chart.save(str(path), inline=True)
        elif path.suffix == ".png":
            chart.save(str(path), scale_factor=2)
        else:
            chart.save(str(path))
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}.") from None


def check_chart(path: Path) -> None:
    """Refuse a name that no chart can have."""
    if path.suffix not in FORMATS:
        raise InputError(f"a chart can be {', '.join(FORMATS)}; got {path.name!r}.")


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
        rows = _values([point._asdict() for point in chosen])
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
        alt.Chart(_values(rows), title="Probability of arm 2 under EXP3")
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
        alt.Chart(_values(losses), title="Privacy loss of round t alone")
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


def _decades(low: int, high: int) -> alt.Axis:
    """Mark powers of ten only."""
    return alt.Axis(values=[10.0**power for power in range(low, high + 1)])


def _values(rows: list[JSON]) -> alt.Data:
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def audit_chart(rows: list[JSON]) -> ChartType:
    """Draw audited against claimed epsilon; a point above the line would disprove the claim."""
    top = 1.1 * max(max(row["claimed"], row["audited"]) for row in rows)
    points = [
        {"release": row["release"], "claimed": row["claimed"], "audited": value, "attack": attack}
        for row in rows
        for attack, value in _audited(row)
    ]
    panels = []
    for release in dict.fromkeys(row["release"] for row in rows):
        line = (
            alt.Chart(_values([{"x": 0, "y": 0}, {"x": top, "y": top}]))
            .mark_line(color="#555555", strokeDash=[4, 4])
            .encode(x="x:Q", y="y:Q")
        )
        marks = (
            alt.Chart(_values([point for point in points if point["release"] == release]))
            .mark_point(size=80, strokeWidth=2.5)
            .encode(
                x=alt.X("claimed:Q", title="claimed epsilon", scale=alt.Scale(domain=[0, top])),
                y=alt.Y("audited:Q", title="audited epsilon (lower bound)"),
                color=alt.Color(
                    "attack:N", title="attack", scale=alt.Scale(range=[BLUE, ORANGE, GREEN])
                ),
                shape=alt.Shape("attack:N", title="attack"),
                tooltip=["attack:N", "claimed:Q", alt.Tooltip("audited:Q", format=".4f")],
            )
        )
        panels.append((line + marks).properties(width=300, height=300, title=release))
    note = "On or below the line: not disproved, which is no proof. Above: the claim is false."
    title = alt.Title("Audited against claimed epsilon", subtitle=note, anchor="middle")
    return alt.hconcat(*panels).properties(title=title)


def _audited(row: JSON) -> list[tuple[str, float]]:
    """Return what was found, by attack: on releases and policies, or through a person."""
    if "slots" in row:
        return [(f"by one person, {row['slots']} slots", row["audited"])]
    return [("on the release", row["audited"]), ("through a policy", row["audited_policy"])]


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
        alt.Chart(_values(tiles))
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
