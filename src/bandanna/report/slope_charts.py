"""Final regret against one axis of a study, on logarithmic axes, with fitted exponents."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl
from altair.typing import ChartType

from bandanna._core.types import JSON
from bandanna.report.menus import Menus, cut, rows
from bandanna.report.style import HEIGHT, WIDTH, by_algorithm, logarithmic, logarithmic_y
from bandanna.studies.schema import AXES
from bandanna.studies.slopes import fit_slope

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
    # A delta of 0 has no place on a logarithmic axis.
    all_rows = all_rows.filter(pl.col(axis).is_null() | (pl.col(axis) > 0))
    if all_rows[axis].drop_nulls().n_unique() < 2:
        return None
    free = all_rows.filter(pl.col("epsilon").is_null())["algorithm"].unique().to_list()
    everywhere = _for_every_epsilon(all_rows).filter(pl.col(axis).is_not_null())
    everywhere = cut(everywhere, others).with_columns(
        low=(pl.col("mean") - 1.96 * pl.col("standard_error").fill_nan(0)).clip(
            pl.col("mean") / 10
        ),
        high=pl.col("mean") + 1.96 * pl.col("standard_error").fill_nan(0),
    )
    # What has no epsilon does not change with it: a level line, no points and no power.
    level = pl.col("algorithm").is_in(free) if axis == "epsilon" else pl.lit(False)
    chosen = everywhere.filter(~level)
    looks = by_algorithm(everywhere["algorithm"])
    x = logarithmic(AXES[axis].title, axis, everywhere[axis])
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
        layers.append(
            levels.mark_line(strokeWidth=2).encode(
                x=x, y=y, color=looks["color"], strokeDash=looks["strokeDash"]
            )
        )
    lines, labels = _fits(chosen, axis, others)
    some_fit = any(label["label"] for label in labels)
    if some_fit:
        fitted = menus.over(rows(pl.DataFrame(lines, infer_schema_length=None)))
        layers.insert(
            0,
            fitted.mark_line(strokeWidth=2).encode(
                x=f"{axis}:Q", y="mean:Q", color=looks["color"], strokeDash=looks["strokeDash"]
            ),
        )
        said = menus.over(rows(pl.DataFrame(labels, infer_schema_length=None)))
        layers.append(
            said.mark_text(align="left", dx=9, fontSize=11).encode(
                x=f"{axis}:Q",
                y="mean:Q",
                text="label:N",
                color=looks["color"],
            )
        )
    chart = alt.layer(*layers).properties(width=WIDTH - 80, height=HEIGHT)
    note = ["Points: means with 95% intervals."]
    if some_fit:
        note.append(
            f"Thick lines: regret changes like {axis} to the power at their end (95% interval)."
        )
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
            if part.is_empty():
                continue
            slope = fit_slope(part[axis], part["mean"], part["standard_error"])
            if slope is None or slope.high - slope.low > INFORMATIVE:
                continue
            place = dict(zip(others, setting, strict=True)) | {"algorithm": name}
            low, high = float(part[axis].to_numpy().min()), float(part[axis].to_numpy().max())
            for x in (low, high):
                lines.append(place | {axis: x, "mean": slope.constant * x**slope.value})
            ends.append(place | {axis: high, "mean": lines[-1]["mean"], "label": f"{slope}"})
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
