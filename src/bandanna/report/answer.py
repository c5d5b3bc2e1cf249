"""A study's answer in a sentence, from its table."""

from __future__ import annotations

import polars as pl

from bandanna.simulation.contestants import NO_PRIVACY
from bandanna.studies.schema import AXES

CLEAR = 3.0
"""Standard errors between two means that make the better one clearly better."""

SAME = [name for name, axis in AXES.items() if axis.rivals_share]
"""Cells that agree in these are rivals."""


def winners(table: pl.DataFrame) -> pl.DataFrame:
    """Return the private cell with the smallest mean regret in each setting, and how clearly."""
    private = table.filter(pl.col("epsilon").is_not_null()).sort("mean")
    gap = pl.col("mean").get(1, null_on_oob=True) - pl.col("mean").first()
    errors = pl.col("standard_error").fill_nan(0)
    noise = (errors.first() ** 2 + errors.get(1, null_on_oob=True) ** 2).sqrt()
    return private.group_by(SAME, maintain_order=True).agg(
        pl.col("cell").first(),
        pl.col("algorithm").first(),
        rivals=pl.len() - 1,
        clear=gap > CLEAR * noise,
    )


def answer(table: pl.DataFrame) -> str:
    """Say who has the smallest regret, in how many settings, and what privacy costs.

    Environments are never mixed in one range of prices.
    """
    best = winners(table).filter(pl.col("rivals") > 0)
    if best.is_empty():
        return _only_one(table)
    counts = best.group_by("algorithm").agg(
        pl.len().alias("wins"), pl.col("clear").sum().alias("clear")
    )
    counts = counts.sort("wins", "algorithm", descending=[True, False])
    name, wins, clear = counts.row(0)
    places = best.height
    where = "in the one setting compared" if places == 1 else f"in {wins} of {places} settings"
    how = "not clearly beyond the error of simulation" if clear == 0 else "clearly beyond error"
    if 0 < clear < wins:
        how = f"in {clear} of them clearly beyond error"
    sentence = f"Among private algorithms, {name} has the smallest mean regret {where}, {how}"
    price = _price(table, name) if table["environment"].n_unique() == 1 else ""
    return f"{sentence}{price}."


def privacy_prices(table: pl.DataFrame) -> pl.DataFrame | None:
    """Return each private cell's mean regret over that of no privacy in the same setting."""
    same = [name for name in SAME if not AXES[name].private]
    plain = table.filter(pl.col("algorithm") == NO_PRIVACY, pl.col("mean") > 0)
    plain = plain.unique(same).select(*same, plain="mean")
    private = table.filter(pl.col("epsilon").is_not_null(), pl.col("mean") > 0)
    joined = private.join(plain, on=same, nulls_equal=True).with_columns(
        price=pl.col("mean") / pl.col("plain")
    )
    return None if joined.is_empty() else joined


def _price(table: pl.DataFrame, name: str) -> str:
    prices = privacy_prices(table)
    mine = None if prices is None else prices.filter(pl.col("algorithm") == name)
    if mine is None or mine.is_empty():
        return ""
    price = pl.col("price")
    by_epsilon = mine.group_by("epsilon").agg(low=price.min(), high=price.max()).sort("epsilon")
    parts = [
        f"{_range(low, high)} times at epsilon {eps:g}" for eps, low, high in by_epsilon.iter_rows()
    ]
    return f"; its regret is {listed(parts)} what it is without privacy"


def _range(low: float, high: float) -> str:
    few, many = f"{low:.2g}", f"{high:.2g}"
    return few if few == many else f"{few} to {many}"


def _only_one(table: pl.DataFrame) -> str:
    row = table.sort("mean").row(0, named=True)
    return (
        f"The smallest mean regret is {row['mean']:,.0f} in {row['rounds']:,} rounds, "
        f"{row['algorithm']}'s in {row['environment']}; nothing private was compared."
    )


def listed(parts: list[str]) -> str:
    """Join words as one does."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
