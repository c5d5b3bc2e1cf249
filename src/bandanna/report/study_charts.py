"""Charts of a study's results, with menus that choose the setting shown."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl
from altair.typing import ChartType

from bandanna._core.types import JSON
from bandanna.report.charts import WITH_BAND, mean_and_band
from bandanna.report.headline import privacy_prices, usual
from bandanna.report.style import (
    ARMS,
    HEIGHT,
    WIDTH,
    by_algorithm,
    in_order,
    logarithmic,
    logarithmic_y,
)
from bandanna.simulation.baselines import SAME
from bandanna.studies.figures import fit_slope
from bandanna.studies.results import StudyResults
from bandanna.studies.schema import AXES, SETTINGS

MOST_ROWS = 20_000
"""Charts with more rows than this show fewer settings, so that reports stay small."""


def varied(frame: pl.DataFrame, grid: JSON) -> list[str]:
    """Return the axes of which the study has several values."""
    return [
        axis
        for axis in SETTINGS
        if len(grid.get(axis, ())) > 1 and frame[axis].drop_nulls().n_unique() > 1
    ]


def cut(frame: pl.DataFrame, axes: Sequence[str]) -> pl.DataFrame:
    """Keep the usual value of as many axes as needed to make a chart small enough."""
    setting = usual(frame, axes)
    for axis in sorted(setting, key=lambda name: AXES[name].shown.importance):
        if frame.height <= MOST_ROWS:
            break
        same = pl.col(axis) == setting[axis]
        frame = frame.filter(same | pl.col(axis).is_null())  # no epsilon
    return frame


class Menus:
    """Menus that let a reader choose one value of each axis; a chart's title says which.

    Rows without a value, such as the epsilon of what is not private, belong to all of them.
    """

    def __init__(self, frame: pl.DataFrame, axes: Sequence[str]) -> None:
        self._params, self._filters, self._said = [], [], []
        for axis, first in usual(frame, axes).items():
            values = frame[axis].drop_nulls().unique(maintain_order=True).to_list()
            word = AXES[axis].column is str
            if len(values) < 2:
                self._said.append(json.dumps(f"{axis} {first if word else format(first, ',')}"))
                continue
            name = f"pick_{axis}"
            options = values if word else sorted(values)
            menu = alt.binding_select(options=options, name=f"{axis} ")
            self._params.append(alt.param(name=name, value=first, bind=menu))
            self._filters.append(f"datum.{axis} == {name} || datum.{axis} == null")
            self._said.append(f"'{axis} ' + " + (name if word else f"format({name}, ',')"))

    def over(self, data: alt.InlineData) -> alt.Chart:
        """Start a chart of the rows that are chosen."""
        chart = alt.Chart(data)
        for condition in self._filters:
            chart = chart.transform_filter(condition)
        return chart

    def finish(self, chart: ChartType, title: str, note: str | list[str]) -> ChartType:
        """Add the menus, a title that says what is shown, and a note below it."""
        said = " + ', ' + ".join([json.dumps(title), *self._said])
        heading = alt.Title(alt.expr(said), subtitle=note, anchor="start", offset=12)
        finished: ChartType = (
            chart.add_params(*self._params)
            .properties(title=heading)
            .configure_axis(
                gridOpacity=0.45,
                titleFontWeight="normal",
                titlePadding=8,
                titleFontSize=12.5,
                labelFontSize=11.5,
            )
            .configure_legend(labelFontSize=12)
            .configure_header(labelFontSize=12)
            .configure_view(stroke=None)
            .configure_title(
                fontSize=15, subtitleFontSize=12.5, subtitleColor="#444444", subtitlePadding=4
            )
        )
        return finished


def rows(frame: pl.DataFrame) -> alt.InlineData:
    """Hand a frame to Altair with five digits.

    As one CSV text: a hundred times faster than a list of rows, which Altair checks one by one,
    and half as long.
    """
    short = frame.with_columns(pl.col(pl.Float64).round_sig_figs(5))
    kinds = {
        name: "number" if kind.is_numeric() else "string" for name, kind in short.schema.items()
    }
    return alt.InlineData(
        values=short.write_csv(), format=alt.CsvDataFormat(type="csv", parse=kinds)
    )


AT_THE_END = "regret at the end"
SATURATED = 0.9
"""Regret beyond this share of choosing at random's cannot grow much more."""

INFORMATIVE = 0.5
"""An exponent whose 95% interval is wider than this says little, and is not shown."""

ROOM = 0.055
"""Least distance of two labels, as a share of the axis."""


def regret_against(axis: str, table: pl.DataFrame, axes: Sequence[str]) -> ChartType | None:
    """Draw final regret against one axis, both logarithmic, with fitted slopes."""
    others = [other for other in axes if other != axis]
    all_rows = table.select(*AXES, "mean", "standard_error", "uniform").filter(pl.col("mean") > 0)
    # A delta of 0 cannot be shown on a logarithmic axis.
    all_rows = all_rows.filter(pl.col(axis).is_null() | (pl.col(axis) > 0))
    if all_rows[axis].drop_nulls().n_unique() < 2:
        return None
    free = all_rows.filter(pl.col("epsilon").is_null())["algorithm"].unique().to_list()
    everywhere = _for_every_epsilon(all_rows).filter(pl.col(axis).is_not_null())
    mean, half = pl.col("mean"), 1.96 * pl.col("standard_error").fill_nan(0)
    everywhere = cut(everywhere, others).with_columns(
        low=(mean - half).clip(mean / 10), high=mean + half
    )
    # What has no epsilon does not change with it: a level line, no points and no power.
    level = pl.col("algorithm").is_in(free) if axis == "epsilon" else pl.lit(False)
    chosen = everywhere.filter(~level)
    looks = by_algorithm(everywhere["algorithm"])
    x = logarithmic(AXES[axis].shown.title, axis, everywhere[axis])
    y = logarithmic_y("mean:Q", AT_THE_END)
    menus = Menus(everywhere, others)
    base = menus.over(rows(chosen)).encode(x=x, color=looks["color"])
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        y=y,
        tooltip=[
            "algorithm:N",
            f"{axis}:Q",
            alt.Tooltip("mean:Q", format=",.4r"),
            alt.Tooltip("standard_error:Q", format=",.3r"),
        ],
    )
    bars = base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", title=AT_THE_END), y2="high:Q")
    joined = base.mark_line(strokeWidth=1, opacity=0.6).encode(y=y, strokeDash=looks["strokeDash"])
    layers = [joined, bars, points]
    if axis == "epsilon" and free:
        levels = menus.over(rows(everywhere.filter(level)))
        layers.append(levels.mark_line(strokeWidth=2).encode(x=x, y=y, **looks))
    lines, labels = _fits(chosen, axis, others)
    note = ["Points: means with 95% intervals."]
    if any(label["label"] for label in labels):
        fitted = menus.over(rows(pl.DataFrame(lines, infer_schema_length=None)))
        thick = fitted.mark_line(strokeWidth=2)
        layers.insert(0, thick.encode(x=f"{axis}:Q", y="mean:Q", **looks))
        said = menus.over(rows(pl.DataFrame(labels, infer_schema_length=None)))
        layers.append(
            said.mark_text(align="left", dx=9, fontSize=11).encode(
                x=f"{axis}:Q", y="mean:Q", text="label:N", color=looks["color"]
            )
        )
        power = f"regret changes like {axis} to the power at their end (95% interval)"
        note.append(f"Thick lines: {power}.")
    chart = alt.layer(*layers).properties(width=WIDTH - 80, height=HEIGHT)
    return menus.finish(chart, f"Regret against {axis}", note)


def _for_every_epsilon(frame: pl.DataFrame) -> pl.DataFrame:
    """Repeat what has no epsilon for each of them, so that it stands beside what has."""
    epsilons = frame.select(pl.col("epsilon").drop_nulls().unique().sort())
    if epsilons.is_empty():
        return frame
    free = frame.filter(pl.col("epsilon").is_null()).drop("epsilon").join(epsilons, how="cross")
    return pl.concat([frame.filter(pl.col("epsilon").is_not_null()), free.select(frame.columns)])


def _fits(chosen: pl.DataFrame, axis: str, others: Sequence[str]) -> tuple[list[JSON], list[JSON]]:
    """Fit each algorithm in each setting; labels are moved apart where they would overlap."""
    lines: list[JSON] = []
    labels: list[JSON] = []
    groups = chosen.group_by(others, maintain_order=True) if others else [((), chosen)]
    for setting, group in groups:
        ends = []
        for (name,), part in group.group_by("algorithm", maintain_order=True):
            # Who does as badly as chance cannot do worse: such points follow no power.
            part = part.filter(pl.col("mean") < SATURATED * pl.col("uniform"))  # noqa: PLW2901
            slope = fit_slope(part[axis], part["mean"], part["standard_error"])
            if slope is None or slope.high - slope.low > INFORMATIVE:
                continue
            series = dict(zip(others, setting, strict=True)) | {"algorithm": name}
            low, high = float(part[axis].to_numpy().min()), float(part[axis].to_numpy().max())
            for x in (low, high):
                lines.append(series | {axis: x, "mean": slope.constant * x**slope.value})
            ends.append(series | {axis: high, "mean": lines[-1]["mean"], "label": f"{slope}"})
        if not ends:  # a layer without rows would make the browser complain
            point = group.select(*others, "algorithm", axis, "mean").row(0, named=True)
            lines.append(point)
            labels.append(point | {"label": ""})
        else:
            means = group["mean"].to_numpy()
            span = float(np.log(means.max() / means.min()))
            labels += _apart(ends, (span + 0.2) * ROOM)
    return lines, labels


def _apart(labels: list[JSON], room: float) -> list[JSON]:
    """Move labels up where they are too close, in logarithms."""
    labels.sort(key=lambda label: label["mean"])
    for before, label in itertools.pairwise(labels):
        label["mean"] = max(label["mean"], before["mean"] * float(np.exp(room)))
    return labels


SHARE_POINTS = 25


def study_charts(results: StudyResults) -> dict[str, ChartType]:
    """Return every chart that a study's results allow, by name."""
    everything, axes = results.table(), varied(results.table(), results.index["grid"])
    table, curves = (_compared(frame) for frame in (everything, results.curves()))
    charts: dict[str, ChartType | None] = {"regret over time": regret_over_time(curves, axes)}
    for axis in axes:
        if axis != "environment":
            charts[f"regret against {axis}"] = regret_against(axis, table, axes)
    charts["price of privacy"] = price_of_privacy(everything, axes)
    charts["arm shares"] = arm_shares(results, axes)
    return {name: chart for name, chart in charts.items() if chart is not None}


def _compared(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the same algorithms without privacy, which belong to the price of privacy.

    Where nothing else was played they stay.
    """
    others = frame.filter(~pl.col("algorithm").str.ends_with(SAME))
    return frame if others.is_empty() else others


def regret_over_time(curves: pl.DataFrame, axes: Sequence[str]) -> ChartType:
    """Draw mean regret as it grows, with a band in which nine runs of ten are."""
    chosen = cut(curves.select(*AXES, "round", "mean", "q05", "q95"), axes)
    menus = Menus(chosen, axes)
    looks = by_algorithm(chosen["algorithm"])
    band, line = mean_and_band(menus.over(rows(chosen)), looks, "algorithm")
    chart = (band + line).properties(width=WIDTH, height=HEIGHT)
    return menus.finish(chart, "Regret over time", WITH_BAND)


def price_of_privacy(table: pl.DataFrame, axes: Sequence[str]) -> ChartType | None:
    """Draw how many times the regret of the strongest without privacy each algorithm has."""
    prices = privacy_prices(table)
    if prices is None or prices["epsilon"].drop_nulls().n_unique() < 2:
        return None
    prices = _for_every_epsilon(prices)
    others = [axis for axis in axes if axis not in ("epsilon", "batch")]
    # A policy that learns nothing has the regret of choosing at random: the ceiling.
    ceiling = prices.unique([*others, "epsilon"], maintain_order=True).with_columns(
        algorithm=pl.lit("uniform"), price=pl.col("uniform") / pl.col("plain")
    )
    drawn = pl.concat([prices.filter(pl.col("algorithm") != "uniform"), ceiling])
    chosen = cut(drawn.select(*AXES, "price"), others)
    looks = by_algorithm(chosen["algorithm"])
    menus = Menus(chosen, others)
    base = menus.over(rows(chosen)).encode(
        x=logarithmic(AXES["epsilon"].shown.title, "epsilon", chosen["epsilon"]),
        y=logarithmic_y("price:Q", "regret, times the strongest's without privacy"),
        color=looks["color"],
        tooltip=["algorithm:N", "epsilon:Q", alt.Tooltip("price:Q", format=".3r")],
    )
    line = base.mark_line(strokeWidth=2.2).encode(strokeDash=looks["strokeDash"])
    chart = (line + base.mark_point(filled=True, size=55, opacity=1)).properties(
        width=WIDTH, height=HEIGHT - 60
    )
    note = [
        "Mean regret over the strongest learner's without privacy; uniform: choosing at random."
    ]
    if prices["algorithm"].str.ends_with(SAME).any():
        note.append("Level lines, -no-privacy: the same algorithm without privacy.")
    return menus.finish(chart, "The price of privacy", note)


def arm_shares(results: StudyResults, axes: Sequence[str]) -> ChartType | None:
    """Draw which arms were played, as shares of the rounds so far."""
    shares = _compared(results.shares())
    if shares.is_empty():
        return None
    chosen = cut(_few_arms(_few_rounds(shares), results.environments), axes)
    panels = in_order(chosen["algorithm"])
    order = chosen["name"].unique(maintain_order=True).to_list()
    colours = alt.Scale(domain=order, range=ARMS)
    whole, percent = alt.Scale(domain=[0, 1]), alt.Axis(format="%")
    menus = Menus(chosen, axes)
    chart = (
        menus.over(rows(chosen))
        .mark_area()
        .encode(
            x=alt.X("round:Q", title="rounds played", axis=alt.Axis(format="~s", tickCount=3)),
            y=alt.Y(
                "share:Q", title="share of the rounds", stack="zero", scale=whole, axis=percent
            ),
            color=alt.Color(
                "name:N", title=None, sort=order, scale=colours, legend=alt.Legend(orient="bottom")
            ),
            order="position:Q",
            facet=alt.Facet("algorithm:N", title=None, columns=3, sort=panels),
            tooltip=["name:N", "round:Q", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(width=200, height=130)
        .resolve_axis(x="independent")  # or columns without a last panel would have an axis alone
    )
    return menus.finish(chart, "Which arms were played", "Shares of the rounds so far, on average")


def _few_rounds(shares: pl.DataFrame) -> pl.DataFrame:
    """Keep every so many checkpoints of each cell, and always the last."""
    stops = shares["round"].n_unique()
    step = max(1, stops // SHARE_POINTS)
    rank = pl.col("round").rank("dense", descending=True).over("cell") - 1
    return shares.filter(rank % step == 0)


def _few_arms(shares: pl.DataFrame, environments: JSON) -> pl.DataFrame:
    """Name arms; where there are more than colours, the least played ones are one."""
    last = shares.filter(pl.col("round") == pl.col("rounds"))
    means = last.group_by("arms", "arm").agg(pl.col("share").mean())
    rank = pl.col("share").rank("ordinal", descending=True).over("arms")
    ranked = means.select("arms", "arm", rank=rank)
    shares = shares.join(ranked, on=["arms", "arm"])
    kept = (pl.col("arms") <= len(ARMS)) | (pl.col("rank") < len(ARMS))
    labels = pl.DataFrame(
        [
            {"environment": environment, "arm": arm, "known": name}
            for environment, about in environments.items()
            for arm, name in enumerate(about["arms"])
        ],
        schema={"environment": pl.String, "arm": pl.Int64, "known": pl.String},
    )
    shares = shares.join(labels, on=["environment", "arm"], how="left")
    plain = pl.coalesce("known", pl.format("arm {}", pl.col("arm") + 1))
    shares = shares.with_columns(
        name=pl.when(kept).then(plain).otherwise(pl.lit("all others")),
        position=pl.when(kept).then(pl.col("arm")).otherwise(10**6),
    )
    keys = [*AXES, "round", "name", "position"]
    return shares.group_by(keys).agg(pl.col("share").sum()).sort(*AXES, "position", "round")
