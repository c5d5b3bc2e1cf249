"""The chart of one simulation, for notebooks."""

from __future__ import annotations

import altair as alt
import numpy as np
from altair.typing import ChartType

from bandanna.report.style import HEIGHT, WIDTH, by_algorithm, few_marks
from bandanna.simulation.results import Results


def results_chart(results: Results) -> ChartType:
    """Draw every policy's mean regret as it grows, with a band in which nine runs of ten are."""
    rows = []
    for name in results.runs:
        curves = results.curves(name)
        low, high = np.quantile(curves, (0.05, 0.95), axis=0)
        for place, stop in enumerate(results.stops):
            ends = {"low": float(low[place]), "high": float(high[place])}
            mean = float(curves[:, place].mean())
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
    chart: ChartType = (band + line).properties(width=WIDTH, height=HEIGHT, title=title)
    return chart
