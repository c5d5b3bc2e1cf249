"""Playing a cell: what workers do, on this machine or another, and what is made of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS
from bandanna._core.types import JSON
from bandanna.contextual.simulation import simulate_context
from bandanna.environments.frames import Column
from bandanna.policy import Policy
from bandanna.simulation.arguments import checkpoint_rounds
from bandanna.simulation.baselines import NO_PRIVACY, strongest
from bandanna.simulation.results import Answers, PolicyRuns, Results, Retired, statistics
from bandanna.simulation.runs import simulate
from bandanna.studies.cell import Cell, Shard
from bandanna.studies.contexts import CONTEXTUAL, DELTA, promise_of, table_of
from bandanna.studies.environments import Data, Source
from bandanna.studies.schema import AXES

if TYPE_CHECKING:
    import polars as pl

MOST_SHARES = 1000
"""With more arms than this, their shares are not kept."""

PROMISE = ("epsilon", "delta", "protects", "model", "mechanism", "because", "assumptions")
"""What is kept of a guarantee."""

FOUND = ("answered", "rounds_to_answer", "wrong_answers", "retired", "wrongly_retired")
"""What runs found of arms; None where a policy looks for nothing."""


class Played(NamedTuple):
    """What some runs of a cell came to."""

    runs: dict[str, Column]
    """A row for each run, of ``PolicyRuns``: its regret, leaders and released means; and where
    there are any, its alarm, its answer and round, and what it retired."""
    plays: NDArray[np.int64]
    """Rounds each arm was played before each checkpoint in all runs, shape (checkpoints, arms)."""
    same: JSON
    """What all runs share, in plain values; ``ran`` is the algorithm that played: what ``auto`` or
    ``no-privacy`` stands for here."""


def play(part: Shard, losses: Data | None) -> tuple[str, Played]:
    """Play some runs of a cell on one core; returns their name and what they came to."""
    cell = part.cell.carrying(losses)
    if cell.contextual:
        ran, results = cell.algorithm, _play_contexts(cell, part)
    else:
        policy = cell.policy()
        if cell.algorithm == NO_PRIVACY:
            size = cell.arms, cell.rounds, cell.experts
            policy = _strongest(cell.environment, *size, cell.batch, cell.seed)
        ran = policy.algorithm
        results = simulate(
            policy,
            cell.make_environment(),
            replicates=part.runs,
            first_run=part.first,
            seed=cell.seed,
            cores=1,
            checkpoints=cell.checkpoints,
            progress=False,
            metrics=cell.metrics,
        )
    runs, ahead = results.runs["policy"], results.ahead
    rows = {"regret": runs.regret, "leaders": runs.leaders, "released": runs.released}
    same = {
        "stops": results.stops.tolist(),
        "uniform": results.uniform_regret.tolist(),
        "ahead": None if ahead is None else ahead.tolist(),
        "best_arm": results.best_arm,
        "best_expert": results.best_expert,
        "segments": results.segments,
        "against": results.against,
        "ran": ran,
    }
    if runs.guard is not None:
        rows["alarms"] = np.array(runs.guard.fired)
        same["false_alarm"] = runs.guard.false_alarm
    if runs.answers is not None:
        rows["answers"] = np.stack(runs.answers, axis=1)
    if runs.retired is not None:
        rows["retired"] = runs.retired.rounds
        same["beyond"] = runs.retired.beyond.tolist()
    plays = np.rint(runs.shares * (part.runs * results.stops[:, None])).astype(np.int64)
    return part.key, Played(rows, plays, same)


def _play_contexts(cell: Cell, part: Shard) -> Results:
    """Play some runs of a policy that decides by context."""
    table, stops = table_of(cell), checkpoint_rounds(cell.rounds, cell.checkpoints)
    rewards = 1.0 - table.losses.mean(axis=0) / UNITS
    regret = np.empty((part.runs, stops.size))
    played = np.zeros((part.runs, stops.size, cell.arms), dtype=np.int64)
    for k in range(part.runs):
        words = np.random.SeedSequence([cell.seed, part.first + k]).generate_state(1)
        run = simulate_context(
            table,
            cell.epsilon,
            cell.delta or DELTA,
            cell.rounds,
            CONTEXTUAL.get(cell.algorithm, "feedback"),
            seed=int(words[0]),
        )
        regret[k] = stops * rewards.max() - np.cumsum(run.rewards)[stops - 1]
        for index, stop in enumerate(stops):
            played[k, index] = np.bincount(run.arms[:stop], minlength=cell.arms)
    runs = PolicyRuns(
        regret=regret,
        plays=played[:, -1],
        shares=played.mean(axis=0) / stops[:, None],
        leaders=played.argmax(axis=2),
        released=np.full((part.runs, cell.arms), np.nan),
        batch=1,
    )
    return Results(
        {"policy": runs},
        cell.rounds,
        stops,
        comparator="expected",
        uniform_regret=stops * (rewards.max() - rewards.mean()),
        best_arm=int(rewards.argmax()),
    )


@lru_cache(maxsize=16)
def _strongest(
    source: Source, arms: int, rounds: int, experts: int | None, batch: int | None, seed: int
) -> Policy:
    """Choose the learner that no privacy stands for; parts of a cell choose the same."""
    return strongest(source.make(arms, rounds, experts), batch=batch, seed=seed)


def frame_of(cell: Cell, parts: Sequence[Played]) -> pl.DataFrame:
    """Return a row for each checkpoint; what is the same for all of them is repeated."""
    import polars as pl

    batch, grows = None, False
    if cell.contextual:
        promise = promise_of(cell)
    else:
        policy = cell.policy()
        batch, promise = policy.batch, policy.guarantee
        grows = getattr(policy.recipe.learner, "grows", False)  # then nobody counted its batches

    def releases(rounds: int) -> int | None:
        if batch is None or grows:
            return None
        return rounds // batch if promise.private else 0

    same = parts[0].same
    runs = {name: np.concatenate([part.runs[name] for part in parts]) for name in parts[0].runs}
    stops, uniform, ahead, best = (same[k] for k in ("stops", "uniform", "ahead", "best_arm"))
    curves, kept = runs["regret"], cell.arms <= MOST_SHARES
    shares = sum(part.plays for part in parts) / (len(curves) * np.array(stops)[:, None])
    released = _released(runs["released"]) if kept and promise.private else None
    found: dict[str, float | None] = dict.fromkeys(FOUND)
    if "answers" in runs:
        found |= Answers(*runs["answers"].T).summary(best)
    if "retired" in runs:
        found |= Retired(runs["retired"], np.array(same["beyond"])).summary()
    constant: JSON = {
        "cell": cell.key,
        **{name: getattr(cell, name) for name in AXES},
        "environment": cell.environment.label,
        "batch": batch,
        "replicates": cell.replicates,
        "seed": cell.seed,
        "options": json.dumps(cell.options) if cell.options else None,
        "model": promise.model,
        "against": same["against"],
        "ran": same["ran"],
        "segments": same["segments"],
        "alarms": float(runs["alarms"].mean()) if "alarms" in runs else None,
        "false_alarm": same.get("false_alarm"),
        **found,
        "best_arm": best,
        "best_expert": same["best_expert"],
        "guarantee": {name: getattr(promise, name) for name in PROMISE},
    }
    rows = [
        constant
        | {
            "round": stop,
            **statistics(curves[:, index]),
            "uniform": uniform[index],
            "segment_mean": float(curves[:, index].mean()) + ahead[index] if ahead else None,
            "releases": releases(stop),
            "regret": curves[:, index].tolist(),
            "shares": shares[index].tolist() if kept else None,
            "found": None if best is None else float((runs["leaders"][:, index] == best).mean()),
            "released": released if stop == stops[-1] else None,
        }
        for index, stop in enumerate(stops)
    ]
    number, whole, text, several = pl.Float64(), pl.Int64(), pl.String(), pl.List(pl.Float64())
    kinds: dict[type, pl.DataType] = {str: text, int: whole, float: number}
    schema: dict[str, pl.DataType] = dict.fromkeys(rows[0], number)
    schema |= {name: kinds[axis.column] for name, axis in AXES.items()}
    schema |= dict.fromkeys(("cell", "options", "model", "against", "ran"), text)
    schema |= dict.fromkeys(("replicates", "seed", "segments", "best_arm", "best_expert"), whole)
    schema |= {"round": whole, "releases": whole, "regret": several, "shares": several}
    schema |= {"released": pl.List(several)}
    promised = dict.fromkeys(PROMISE, text) | {"epsilon": number, "delta": number}
    schema |= {"guarantee": pl.Struct(promised | {"assumptions": pl.List(text)})}
    return pl.DataFrame(rows, schema=schema)


def _released(means: NDArray[np.float64]) -> list[list[float | None]]:
    """Return each arm's mean as released: on average, and where 95% of the runs are."""
    by_arm: list[list[float | None]] = []
    for arm in means.T:
        known = arm[~np.isnan(arm)]
        if known.size == 0:
            by_arm.append([None, None, None])
        else:
            low, high = np.quantile(known, (0.025, 0.975))
            by_arm.append([float(known.mean()), float(low), float(high)])
    return by_arm
