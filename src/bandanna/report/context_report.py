"""The report of contextual policies on a table, as one HTML page that needs no network."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

import altair as alt
from altair.typing import ChartType

from bandanna._core.types import JSON
from bandanna.contextual.simulation import HEADINGS, SINGLE, ContextComparison
from bandanna.privacy.epochs import PROTECTS, EpochRelease
from bandanna.report.page import render, write_page
from bandanna.report.style import HEIGHT, WIDTH, by_algorithm


def reward_chart(found: ContextComparison) -> ChartType:
    """Draw the mean reward in parts of the run, with bands of two standard errors."""
    rows: list[JSON] = []
    for row in found.rows:
        for point in row.curve:
            half = 0.0 if math.isnan(point.reward.error) else 2.0 * point.reward.error
            mean = point.reward.mean
            ends = {"low": mean - half, "high": mean + half}
            rows.append({"series": row.protects, "round": point.round, "reward": mean, **ends})
    for end in (found.rows[0].curve[0].round, found.rounds):
        level = {"reward": found.single, "low": found.single, "high": found.single}
        rows.append({"series": SINGLE, "round": end, **level})
    looks = by_algorithm([*(row.protects for row in found.rows), SINGLE], "series")
    data = alt.Data(values=rows)  # type: ignore[no-untyped-call]
    x = alt.X("round:Q", title="rounds played", axis=alt.Axis(format="~s", tickCount=6))
    base = alt.Chart(data).encode(x=x, color=looks["color"])
    band = base.mark_area(opacity=0.13).encode(y=alt.Y("low:Q", title="mean reward"), y2="high:Q")
    line = base.mark_line(strokeWidth=2.2).encode(
        y=alt.Y("reward:Q", title="mean reward"),
        strokeDash=looks["strokeDash"],
        tooltip=["series:N", "round:Q", alt.Tooltip("reward:Q", format=".3f")],
    )
    subtitle = "Mean reward in parts of the run, with a band of two standard errors"
    title = alt.Title("Reward over rounds", subtitle=subtitle, anchor="start")
    chart: ChartType = alt.layer(band, line).properties(width=WIDTH, height=HEIGHT, title=title)
    return chart


def write_context_report(
    found: ContextComparison,
    path: Path,
    *,
    title: str,
    command: Sequence[str],
    notes: Sequence[str] = (),
) -> None:
    """Write the report; ``command`` is what was typed to make it."""
    page = render(
        "context.html",
        {"1": reward_chart(found)},
        title=title,
        found=found,
        notes=notes,
        setting=[
            ("rewards", found.about),
            ("arms", f"{found.arms}"),
            ("encoded features", f"{found.features}"),
            ("epsilon, delta", f"{found.epsilon:g}, {found.delta:g}"),
            ("runs", f"{found.replicates} of each, {found.rounds:,} rounds, seed {found.seed}"),
        ],
        headings=HEADINGS,
        rows=found.table,
        promises=_promises(found),
        command=shlex.join(command),
    )
    write_page(path, page)


def _promises(found: ContextComparison) -> list[JSON]:
    promises = []
    for protects in PROTECTS:
        size = found.epsilon, found.delta, found.arms, found.features
        promise = EpochRelease(protects, *size).guarantee()
        entries = [("protects", promise.protects), ("mechanism", promise.mechanism)]
        entries.append(("because", promise.because))
        entries += [("assumes", one) for one in promise.assumptions]
        headline = f"epsilon = {promise.epsilon:g}, delta = {promise.delta:g} ({promise.model})"
        promises.append({"name": protects, "headline": headline, "entries": entries})
    return promises
