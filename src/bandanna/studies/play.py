"""Playing a cell: what workers do, on this machine or another, and what is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna.simulation.results import statistics
from bandanna.simulation.runs import simulate
from bandanna.studies.cell import Cell, Part
from bandanna.studies.schema import AXES
from bandanna.studies.source import Data
from bandanna.types import JSON, Guarantee

if TYPE_CHECKING:
    import polars as pl

MOST_SHARES = 1000
"""With more arms than this, their shares are not kept."""

PROMISE = ("epsilon", "delta", "protects", "model", "mechanism", "because", "assumptions")
"""What is kept of a guarantee."""


class Played(NamedTuple):
    """What some runs of a cell came to."""

    stops: NDArray[np.int64]
    regret: NDArray[np.float64]
    """Before each checkpoint, shape (runs, checkpoints)."""
    plays: NDArray[np.int64]
    """Rounds each arm was played before each checkpoint in all runs, shape (checkpoints, arms)."""
    uniform: NDArray[np.float64]
    """The uniform player's regret before each checkpoint."""
    leaders: NDArray[np.int64]
    """The arm played most before each checkpoint, shape (runs, checkpoints)."""
    released: NDArray[np.float64]
    """Each arm's mean loss, from 0 to 1, as the releases tell it; shape (runs, arms)."""
    best: int
    """The arm that is best; -1 where it depends on the run, or experts advise."""
    against: str


def play(part: Part, losses: Data | None) -> tuple[str, Played]:
    """Play some runs of a cell on one core; returns their name and what they came to."""
    cell = part.cell
    found = simulate(
        cell.policy(),
        cell.carrying(losses).place(),
        replicates=part.runs,
        first_run=part.first,
        seed=cell.seed,
        cores=1,
        checkpoints=cell.checkpoints,
        progress=False,
    )
    rounds = part.runs * found.stops[:, None]
    plays = np.rint(found.shares("policy") * rounds).astype(np.int64)
    runs = found.runs["policy"]
    best = -1 if found.best_arm is None else found.best_arm
    return part.key, Played(
        found.stops,
        runs.regret,
        plays,
        found.uniform_regret,
        runs.leaders,
        runs.released,
        best,
        found.against,
    )


def frame_of(cell: Cell, parts: Sequence[Played]) -> pl.DataFrame:
    """Return a row for each checkpoint; what is the same for all of them is repeated."""
    import polars as pl

    policy = cell.policy()
    batch, promise = policy.batch, policy.guarantee
    stops, uniform, best = parts[0].stops, parts[0].uniform, parts[0].best
    curves = np.concatenate([part.regret for part in parts])
    leaders = np.concatenate([part.leaders for part in parts])
    kept = cell.arms <= MOST_SHARES
    released = _released(np.concatenate([part.released for part in parts])) if kept else None
    shares = sum(part.plays for part in parts) / (len(curves) * stops[:, None])
    rows: list[JSON] = [
        {
            "round": int(stop),
            **statistics(curves[:, place]),
            "uniform": float(uniform[place]),
            "releases": int(stop) // batch if promise.private else 0,
            "regret": curves[:, place].tolist(),
            "shares": shares[place].tolist() if kept else None,
            "found": None if best < 0 else float((leaders[:, place] == best).mean()),
            "released": released if stop == stops[-1] and promise.private else None,
        }
        for place, stop in enumerate(stops)
    ]
    floats, whole, several = pl.Float64(), pl.Int64(), pl.List(pl.Float64())
    schema: dict[str, pl.DataType] = dict.fromkeys(rows[0], floats)
    schema |= {"round": whole, "releases": whole, "regret": several, "shares": several}
    schema |= {"released": pl.List(several)}
    kinds: dict[type, pl.DataType] = {str: pl.String(), int: whole, float: floats}
    values = {name: getattr(cell, name) for name in AXES}
    values |= {"environment": cell.environment.label, "batch": batch}
    constant = {
        "cell": pl.lit(cell.key),
        **{name: pl.lit(value, dtype=kinds[AXES[name].column]) for name, value in values.items()},
        "replicates": pl.lit(cell.replicates, dtype=whole),
        "seed": pl.lit(cell.seed, dtype=whole),
        "model": pl.lit(promise.model),
        "against": pl.lit(parts[0].against),
        "best_arm": pl.lit(None if best < 0 else best, dtype=whole),
        "guarantee": pl.lit(pl.Series([_plain(promise)], dtype=_promise_kind())).first(),
    }
    frame = pl.DataFrame(rows, schema=schema)
    return frame.select(**constant, **{name: pl.col(name) for name in schema})


def _released(means: NDArray[np.float64]) -> list[list[float | None]]:
    """Return each arm's mean as released: on average, and where 95% of the runs are."""
    found: list[list[float | None]] = []
    for arm in means.T:
        known = arm[~np.isnan(arm)]
        if known.size == 0:
            found.append([None, None, None])
        else:
            low, high = np.quantile(known, (0.025, 0.975))
            found.append([float(known.mean()), float(low), float(high)])
    return found


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
