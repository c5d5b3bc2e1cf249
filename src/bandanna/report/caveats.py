"""What a reader of a study's report should know before the numbers."""

from __future__ import annotations

import polars as pl

from bandanna.studies.results import StudyResults


def caveats(results: StudyResults, table: pl.DataFrame) -> list[str]:
    """Return sentences about what is missing, what changes and what guards said."""
    lines = []
    if results.missing:
        lines.append(
            f"{results.missing} of {len(results.index['cells'])} cells have not been run yet; "
            f"this is what is there."
        )
    if table["mean"].min() < 0:  # type: ignore[operator]
        lines.append(
            "Regret below zero is better than every fixed arm, which is possible where the best "
            "arm changes. Such means have no place on a logarithmic axis and are left out there."
        )
    return lines + _changes(table)


def _changes(table: pl.DataFrame) -> list[str]:
    """Say where the best arm changes, and what guards made of the losses."""
    lines = []
    changing = table.filter(pl.col("segment_mean").is_not_null()).unique(
        ["environment", "rounds", "arms", "experts"], maintain_order=True
    )
    for row in changing.iter_rows(named=True):
        best = "expert" if row["best_expert"] is not None else "arm"
        lines.append(
            f"On {row['environment']} the best {best} changes: that of each of "
            f"{row['segments']:,} segments of {row['rounds']:,} rounds loses "
            f"{row['segment_mean'] - row['mean']:,.0f} less than the best fixed one. Against "
            f"segments: regret against whoever plays each segment's best {best}."
        )
    guarded = table.filter(pl.col("alarms").is_not_null())
    for place, algorithm in (
        guarded.select("environment", "algorithm").unique(maintain_order=True).iter_rows()
    ):
        cells = guarded.filter(pl.col("environment") == place, pl.col("algorithm") == algorithm)
        share = pl.col("alarms")
        low, high, chance = cells.select(
            low=share.min(), high=share.max(), chance=pl.col("false_alarm").max()
        ).row(0)
        often = f"{high:.1%}" if low == high else f"{low:.1%} to {high:.1%}"
        often = f"{often} of the runs" if high else "none of the runs"
        lines.append(
            f"{algorithm} is for steady losses. On {place} its guard said in {often} "
            f"that they are not; where they are, it says so with probability at most "
            f"{chance:g} in a run."
        )
    return lines
