"""The table of numbers in a study's report."""

from __future__ import annotations

import polars as pl

from bandanna._core.types import JSON
from bandanna.report.answer import winners
from bandanna.report.style import in_order
from bandanna.simulation.contestants import shown_name
from bandanna.studies.schema import AXES, SETTINGS

NUMBERS = {
    "mean": ("mean", ",.0f"),
    "standard_error": ("s.e.", ",.0f"),
    "q05": ("5%", ",.0f"),
    "q50": ("median", ",.0f"),
    "q95": ("95%", ",.0f"),
    "share_of_uniform": ("of uniform", ".1%"),
    "segment_mean": ("against segments", ",.0f"),
    "releases": ("releases", ",.0f"),
}
OPTIONAL = ("segment_mean",)
"""Columns that are left out where no cell has them."""


def numbers_table(table: pl.DataFrame) -> tuple[list[JSON], list[JSON]]:
    """Lay out one row for each cell; axes with one value only are said in the setting."""
    axes = [name for name in SETTINGS if table[name].n_unique() > 1 or name in ("epsilon", "batch")]
    best = set(winners(table)["cell"])
    order = {name: place for place, name in enumerate(in_order(table["algorithm"]))}
    shared = [name for name in axes if AXES[name].rivals_share]
    keys = sorted(shared, key=lambda name: AXES[name].private)  # the problem, then its privacy
    rank = pl.col("algorithm").replace_strict(order)
    sorted_rows = table.sort(*keys, rank, "batch", nulls_last=True, maintain_order=True)
    shown = {
        name: how
        for name, how in NUMBERS.items()
        if name not in OPTIONAL or table[name].count() > 0
    }
    columns: list[JSON] = [{"heading": "algorithm", "word": True}]
    columns += [{"heading": axis, "word": AXES[axis].column is str} for axis in axes]
    columns += [{"heading": heading, "word": False} for heading, _ in shown.values()]
    rows = []
    for row in sorted_rows.iter_rows(named=True):
        cells = [shown_name(row["algorithm"], row["ran"]), *(_plain(row[axis]) for axis in axes)]
        cells += [_number(row[name], style) for name, (_, style) in shown.items()]
        rows.append({"cells": cells, "best": row["cell"] in best})
    return columns, rows


def _plain(value: str | float | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,}"


def _number(value: float | None, style: str) -> str:
    if value is None or value != value:  # noqa: PLR0124  # NaN
        return "-"
    # Small regrets deserve a digit more.
    return format(value, ",.1f" if style == ",.0f" and 0 < abs(value) < 10 else style)
