"""Playing a cell: what workers do, on this machine or another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bandanna.simulation.results import Results, statistics
from bandanna.simulation.runs import simulate
from bandanna.studies.cell import Cell
from bandanna.studies.loss_file import LossFile
from bandanna.studies.schema import AXES
from bandanna.types import JSON, Guarantee

if TYPE_CHECKING:
    import polars as pl

MOST_SHARES = 1000
"""With more arms than this, their shares are not kept."""

PROMISE = ("epsilon", "delta", "protects", "model", "mechanism", "because", "assumptions")
"""What is kept of a guarantee."""


def play_cell(cell: Cell, losses: LossFile | None) -> tuple[str, pl.DataFrame]:
    """Play all runs of a cell on one core; returns its name and its results."""
    policy = cell.policy()
    results = simulate(
        policy,
        cell.carrying(losses).place(),
        replicates=cell.replicates,
        seed=cell.seed,
        cores=1,
        checkpoints=cell.checkpoints,
        progress=False,
    )
    return cell.key, _frame(cell, results, policy.batch, policy.guarantee)


def _frame(cell: Cell, results: Results, batch: int, promise: Guarantee) -> pl.DataFrame:
    """Return a row for each checkpoint; what is the same for all of them is repeated."""
    import polars as pl

    curves = results.curves("policy")
    shares = results.shares("policy") if cell.arms <= MOST_SHARES else None
    rows: list[JSON] = [
        {
            "round": int(stop),
            **statistics(curves[:, place]),
            "uniform": float(results.uniform_regret[place]),
            "releases": int(stop) // batch if promise.private else 0,
            "regret": curves[:, place].tolist(),
            "shares": None if shares is None else shares[place].tolist(),
        }
        for place, stop in enumerate(results.stops)
    ]
    floats, whole, several = pl.Float64(), pl.Int64(), pl.List(pl.Float64())
    schema: dict[str, pl.DataType] = dict.fromkeys(rows[0], floats)
    schema |= {"round": whole, "releases": whole, "regret": several, "shares": several}
    kinds: dict[type, pl.DataType] = {str: pl.String(), int: whole, float: floats}
    values = {name: getattr(cell, name) for name in AXES}
    values |= {"environment": cell.environment.label, "batch": batch}
    constant = {
        "cell": pl.lit(cell.key),
        **{name: pl.lit(value, dtype=kinds[AXES[name].column]) for name, value in values.items()},
        "replicates": pl.lit(cell.replicates, dtype=whole),
        "seed": pl.lit(cell.seed, dtype=whole),
        "model": pl.lit(promise.model),
        "against": pl.lit(results.against),
        "guarantee": pl.lit(pl.Series([_plain(promise)], dtype=_promise_kind())).first(),
    }
    frame = pl.DataFrame(rows, schema=schema)
    return frame.select(**constant, **{name: pl.col(name) for name in schema})


def _plain(promise: Guarantee) -> JSON:
    """Return what a deployed policy promises, in values that a file can hold."""
    return {name: getattr(promise, name) for name in PROMISE} | {
        "assumptions": list(promise.assumptions)
    }


def _promise_kind() -> pl.Struct:
    import polars as pl

    numbers = dict.fromkeys(("epsilon", "delta"), pl.Float64())
    texts = dict.fromkeys(PROMISE, pl.String())
    return pl.Struct(texts | numbers | {"assumptions": pl.List(pl.String())})
