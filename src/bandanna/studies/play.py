"""Playing a cell: what workers do, on this machine or another, and what is made of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS
from bandanna._core.types import JSON, Guarantee
from bandanna.contextual.simulation import simulate_context
from bandanna.policy import Policy
from bandanna.simulation.arguments import checkpoint_rounds
from bandanna.simulation.baselines import NO_PRIVACY, strongest
from bandanna.simulation.results import Answers, Retired, statistics
from bandanna.simulation.runs import simulate
from bandanna.studies.cell import Cell, Shard
from bandanna.studies.contexts import AGAINST, CONTEXTUAL, DELTA, promise_of, table_of
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
    ahead: NDArray[np.float64]
    """What the best arm of each segment loses less than the best fixed one, before each
    checkpoint; empty where the best arm does not change."""
    alarms: NDArray[np.float64]
    """Share of the runs in which a guard fired, and how many runs; empty without a guard."""
    answers: NDArray[np.int64]
    """The arm that each run named as the best, and after how many rounds, -1 where none was named;
    shape (runs, 2), empty where none is looked for."""
    retired: NDArray[np.int64]
    """After how many rounds guardrails retired each arm, -1 where they did not; shape (runs, arms),
    empty without guardrails."""
    beyond: NDArray[np.bool_]
    """Whether each arm truly is beyond its guardrail; empty without."""
    best: int
    """The arm that is best; -1 where it depends on the run, or experts advise."""
    best_expert: int
    """The expert who is best; -1 without experts."""
    segments: int
    false_alarm: float
    against: str
    ran: str
    """The algorithm that played: what ``auto`` or ``no-privacy`` stands for here."""


def play(part: Shard, losses: Data | None) -> tuple[str, Played]:
    """Play some runs of a cell on one core; returns their name and what they came to."""
    cell = part.cell.carrying(losses)
    if cell.contextual:
        return part.key, _play_contexts(cell, part)
    policy = cell.policy()
    if cell.algorithm == NO_PRIVACY:
        size = cell.arms, cell.rounds, cell.experts
        policy = _strongest(cell.environment, *size, cell.batch, cell.seed)
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
    rounds = part.runs * results.stops[:, None]
    plays = np.rint(results.shares("policy") * rounds).astype(np.int64)
    runs = results.runs["policy"]
    guard, retired = runs.guard, runs.retired
    return part.key, Played(
        stops=results.stops,
        regret=runs.regret,
        plays=plays,
        uniform=results.uniform_regret,
        leaders=runs.leaders,
        released=runs.released,
        ahead=np.zeros(0) if results.ahead is None else results.ahead,
        alarms=np.zeros(0) if guard is None else np.array([guard.alarms, part.runs]),
        answers=_pairs(runs.answers),
        retired=np.zeros((0, cell.arms), np.int64) if retired is None else retired.rounds,
        beyond=np.zeros(0, dtype=bool) if retired is None else retired.beyond,
        best=-1 if results.best_arm is None else results.best_arm,
        best_expert=-1 if results.best_expert is None else results.best_expert,
        segments=results.segments,
        false_alarm=0.0 if guard is None else guard.false_alarm,
        against=results.against,
        ran=policy.algorithm,
    )


def _play_contexts(cell: Cell, part: Shard) -> Played:
    """Play some runs of a policy that decides by context."""
    table, stops = table_of(cell), checkpoint_rounds(cell.rounds, cell.checkpoints)
    rewards = 1.0 - table.losses.mean(axis=0) / UNITS
    regret = np.empty((part.runs, stops.size))
    leaders = np.empty((part.runs, stops.size), dtype=np.int64)
    plays = np.zeros((stops.size, cell.arms), dtype=np.int64)
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
            counts = np.bincount(run.arms[:stop], minlength=cell.arms)
            plays[index] += counts
            leaders[k, index] = counts.argmax()
    return Played(
        stops=stops,
        regret=regret,
        plays=plays,
        uniform=stops * (rewards.max() - rewards.mean()),
        leaders=leaders,
        released=np.full((part.runs, cell.arms), np.nan),
        ahead=np.zeros(0),
        alarms=np.zeros(0),
        answers=_pairs(None),
        retired=np.zeros((0, cell.arms), np.int64),
        beyond=np.zeros(0, dtype=bool),
        best=int(rewards.argmax()),
        best_expert=-1,
        segments=1,
        false_alarm=0.0,
        against=AGAINST,
        ran=cell.algorithm,
    )


def _pairs(answers: Answers | None) -> NDArray[np.int64]:
    if answers is None:
        return np.zeros((0, 2), dtype=np.int64)
    return np.stack([answers.winners, answers.rounds], axis=1).astype(np.int64)


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

    one = parts[0]
    stops, uniform, best = one.stops, one.uniform, one.best
    alarms = np.array([part.alarms for part in parts])
    curves = np.concatenate([part.regret for part in parts])
    leaders = np.concatenate([part.leaders for part in parts])
    kept = cell.arms <= MOST_SHARES
    released = _released(np.concatenate([part.released for part in parts])) if kept else None
    shares = sum(part.plays for part in parts) / (len(curves) * stops[:, None])
    rows: list[JSON] = [
        {
            "round": int(stop),
            **statistics(curves[:, index]),
            "uniform": float(uniform[index]),
            "segment_mean": float(curves[:, index].mean() + one.ahead[index])
            if one.ahead.size
            else None,
            "releases": releases(int(stop)),
            "regret": curves[:, index].tolist(),
            "shares": shares[index].tolist() if kept else None,
            "found": None if best < 0 else float((leaders[:, index] == best).mean()),
            "released": released if stop == stops[-1] and promise.private else None,
        }
        for index, stop in enumerate(stops)
    ]
    floats, whole, several = pl.Float64(), pl.Int64(), pl.List(pl.Float64())
    schema: dict[str, pl.DataType] = dict.fromkeys(rows[0], floats)
    schema |= {"round": whole, "releases": whole, "regret": several, "shares": several}
    schema |= {"released": pl.List(several)}
    kinds: dict[type, pl.DataType] = {str: pl.String(), int: whole, float: floats}
    values = {name: getattr(cell, name) for name in AXES}
    values |= {"environment": cell.environment.label, "batch": batch}
    answers = np.concatenate([part.answers for part in parts])
    retired = np.concatenate([part.retired for part in parts])
    found: dict[str, float | None] = dict.fromkeys(FOUND)
    if len(answers):
        found |= Answers(*answers.T).summary(None if best < 0 else best)
    if len(retired):
        found |= Retired(retired, one.beyond).summary()
    constant = {
        "cell": pl.lit(cell.key),
        **{name: pl.lit(value, dtype=kinds[AXES[name].column]) for name, value in values.items()},
        "replicates": pl.lit(cell.replicates, dtype=whole),
        "seed": pl.lit(cell.seed, dtype=whole),
        "options": pl.lit(json.dumps(cell.options) if cell.options else None, dtype=pl.String()),
        "model": pl.lit(promise.model),
        "against": pl.lit(one.against),
        "ran": pl.lit(one.ran),
        "segments": pl.lit(one.segments, dtype=whole),
        "alarms": pl.lit(_weighted(alarms), dtype=floats),
        "false_alarm": pl.lit(one.false_alarm if alarms.size else None, dtype=floats),
        **{name: pl.lit(value, dtype=floats) for name, value in found.items()},
        "best_arm": pl.lit(None if best < 0 else best, dtype=whole),
        "best_expert": pl.lit(one.best_expert if one.best_expert >= 0 else None, dtype=whole),
        "guarantee": pl.lit(pl.Series([_plain(promise)], dtype=_promise_kind())).first(),
    }
    frame = pl.DataFrame(rows, schema=schema)
    return frame.select(**constant, **{name: pl.col(name) for name in schema})


def _weighted(alarms: NDArray[np.float64]) -> float | None:
    """Return the share of all runs, given the shares and sizes of parts."""
    return float(np.average(alarms[:, 0], weights=alarms[:, 1])) if alarms.size else None


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
