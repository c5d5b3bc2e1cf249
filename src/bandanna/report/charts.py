"""Charts of simulation results."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import numpy as np
from altair.typing import ChartType

from bandanna._core.types import JSON, InputError
from bandanna.report.style import (
    BLUE,
    GREEN,
    HEIGHT,
    ORANGE,
    WIDTH,
    by_algorithm,
    few_marks,
)
from bandanna.simulation.results import Results


class OfflineChart(alt.LayerChart):
    """A chart that notebooks show as a picture, so that nothing is loaded from a network."""

    def _repr_mimebundle_(self, *_: object, **__: object) -> dict[str, str]:
        import vl_convert

        svg = vl_convert.vegalite_to_svg(self.to_dict(), show_warnings=False)
        return {"image/svg+xml": svg, "text/plain": "<chart of regret over time>"}


def mean_and_band(base: alt.Chart, looks: JSON, whose: str) -> tuple[alt.Chart, alt.Chart]:
    """Draw mean regret as it grows, and a band in which nine runs of ten are."""
    x = alt.X("round:Q", title="rounds played", axis=few_marks())
    base = base.encode(x=x, color=looks["color"])
    band = base.mark_area(opacity=0.13).encode(y=alt.Y("q05:Q", title=SO_FAR), y2="q95:Q")
    numbers = [alt.Tooltip(f"{name}:Q", format=",.4r") for name in ("mean", "q05", "q95")]
    line = base.mark_line(strokeWidth=2.2).encode(
        y=alt.Y("mean:Q", title=SO_FAR, axis=few_marks()),
        strokeDash=looks["strokeDash"],
        tooltip=[f"{whose}:N", "round:Q", *numbers],
    )
    return band, line


SO_FAR = "regret so far"
WITH_BAND = "The mean, and a band with 90% of the runs"


def results_chart(results: Results) -> OfflineChart:
    """Draw every policy's mean regret as it grows, with a band in which nine runs of ten are."""
    rows = []
    for name in results.runs:
        curves = results.curves(name)
        for stop, *numbers in zip(
            results.stops,
            curves.mean(axis=0),
            *np.quantile(curves, (0.05, 0.95), axis=0),
            strict=True,
        ):
            mean, low, high = map(float, numbers)
            rows.append({"policy": name, "round": int(stop), "mean": mean, "q05": low, "q95": high})
    looks = by_algorithm(results.runs, "policy")
    layers = mean_and_band(alt.Chart(chart_values(rows)), looks, "policy")
    title = alt.Title("Regret over time", subtitle=WITH_BAND, anchor="start")
    return OfflineChart(layer=list(layers), width=WIDTH, height=HEIGHT, title=title)


FORMATS = (".html", ".svg", ".png", ".pdf")


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


def chart_values(rows: list[JSON]) -> alt.Data:
    """Return rows as a chart takes them."""
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
            alt.Chart(chart_values([{"x": 0, "y": 0}, {"x": top, "y": top}]))
            .mark_line(color="#555555", strokeDash=[4, 4])
            .encode(x="x:Q", y="y:Q")
        )
        marks = (
            alt.Chart(chart_values([point for point in points if point["release"] == release]))
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
