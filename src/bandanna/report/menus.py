"""Which settings of a study a chart shows, and the menus that choose among them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import altair as alt
import polars as pl
from altair.typing import ChartType

from bandanna._core.types import JSON
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


def usual(frame: pl.DataFrame, axes: Sequence[str]) -> JSON:
    """Return the setting to show first.

    Each value is chosen among those that occur with the ones before it.
    """
    setting: JSON = {}
    for axis in (axis for axis in SETTINGS if axis in axes):
        values = frame[axis].drop_nulls().unique(maintain_order=True).to_list()
        ordered = sorted(values)
        firsts = {"first": values[0], "middle": ordered[len(values) // 2], "largest": ordered[-1]}
        chosen = firsts[AXES[axis].shown_first]
        setting[axis] = chosen
        frame = frame.filter((pl.col(axis) == chosen) | pl.col(axis).is_null())
    return setting


def cut(frame: pl.DataFrame, axes: Sequence[str]) -> pl.DataFrame:
    """Keep the usual value of as many axes as needed to make a chart small enough."""
    setting = usual(frame, axes)
    for axis in sorted(setting, key=lambda name: AXES[name].importance):
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
