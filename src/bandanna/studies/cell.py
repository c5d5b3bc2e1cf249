"""A cell: one algorithm in one setting, all its runs, and the name of its results.

A cell's name is a hash of everything its numbers depend on, so equal cells of different studies
are the same file and a changed cell is another one.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bandanna.documents import seal
from bandanna.environments import (
    TREATMENTS,
    Environment,
    ExpertEnvironment,
    LossTable,
    make_environment,
)
from bandanna.policies import Policy
from bandanna.problem import Problem
from bandanna.simulation.contestants import make_policy
from bandanna.simulation.results import statistics
from bandanna.simulation.runs import simulate
from bandanna.studies.loss_file import LossFile
from bandanna.theory.catalogue import needs_epsilon
from bandanna.types import JSON, InputError

if TYPE_CHECKING:
    import polars as pl

NUMBERS = 2
"""Raise this whenever the same settings would give other numbers, or the columns change."""

MOST_SHARES = 1000
"""With more arms than this, their shares are not kept."""

GENERATED_ROUNDS = 100_000


@dataclass(frozen=True)
class Source:
    """Where a cell's losses come from: an environment by name, or a table in a file."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()
    content: str = ""
    """Hash of the table's losses; empty for environments."""
    arms: tuple[str, ...] = ()
    """Names of the table's arms."""

    @property
    def label(self) -> str:
        """What people call it."""
        chosen = ", ".join(f"{name} {value}" for name, value in self.options)
        return f"{self.name} ({chosen})" if chosen else self.name

    def make(
        self,
        arms: int | None,
        rounds: int | None,
        experts: int | None,
        losses: NDArray[np.float64] | None,
    ) -> Environment | ExpertEnvironment:
        """Make the environment; a table is cut to the first ``rounds`` of its rows."""
        if not self.content:
            size = GENERATED_ROUNDS if rounds is None else rounds
            return make_environment(self.name, arms, size, experts, **dict(self.options))
        if experts is not None:
            raise InputError(f"environment {self.name!r} has no experts; got experts {experts}.")
        assert losses is not None
        height, width = losses.shape
        if arms not in (None, width):
            raise InputError(f"{self.name} has {width} arms; got arms {arms}.")
        if rounds is not None and rounds > height:
            raise InputError(f"{self.name} has {height} rounds; got rounds {rounds}.")
        return LossTable(losses[:rounds])

    def arm_names(self, count: int) -> list[str]:
        """Return names of the arms, for charts."""
        if self.name in ("trial", "trial-rules"):
            return list(TREATMENTS)
        return list(self.arms) or [f"arm {arm + 1}" for arm in range(count)]


@dataclass(frozen=True)
class Cell:
    """Everything that determines the numbers of one algorithm in one setting.

    To add an axis to studies: a field here, its use in ``policy`` or ``environment``, and an
    entry in ``bandanna.studies.axes.AXES``.
    """

    algorithm: str
    environment: Source
    epsilon: float | None
    """None for algorithms without privacy."""
    rounds: int
    arms: int
    batch: int | None
    """None for the algorithm's own."""
    experts: int | None
    """None without expert advice."""
    delta: float | None
    """None where nothing may be spent."""
    replicates: int
    seed: int
    checkpoints: int

    @property
    def key(self) -> str:
        """The name of the cell's file."""
        return seal({"numbers": NUMBERS, **self.settings()})[:32]

    def settings(self) -> JSON:
        """Return all settings as plain values."""
        source = self.environment
        losses = {"content": source.content} if source.content else {"name": source.name}
        return asdict(self) | {"environment": losses | dict(source.options)}

    def policy(self) -> Policy:
        """Make the policy."""
        epsilon = math.inf if self.epsilon is None else self.epsilon
        problem = Problem(self.arms, self.rounds, epsilon, self.experts, self.delta or 0.0)
        return make_policy(self.algorithm, problem, self.batch)

    def cost(self) -> float:
        """Guess how long the cell takes, in learning steps times arms."""
        if self.experts is not None:  # advice is looked at every round
            return self.replicates * self.rounds * (10.0 + self.experts)
        return self.replicates * self.rounds / self.policy().batch * (10 + self.arms)


def make_cell(
    values: JSON, losses: LossFile | None, *, replicates: int, seed: int, checkpoints: int
) -> Cell:
    """Fill in what the environment decides, and refuse a combination that cannot apply."""
    source: Source = values["environment"]
    table = None if losses is None else losses.losses
    size = values["arms"], values["rounds"], values["experts"]
    environment = _environment(source, *size, _Table(table))
    free = not needs_epsilon(values["algorithm"])
    cell = Cell(
        **values
        | {
            "arms": environment.arms,
            "rounds": environment.rounds,
            "epsilon": None if free else values["epsilon"],
            "delta": None if free else values["delta"],
            "experts": getattr(environment, "experts", None),
        },
        replicates=replicates,
        seed=seed,
        checkpoints=checkpoints,
    )
    cell.policy()
    return cell


def play_cell(cell: Cell, losses: NDArray[np.float64] | None) -> tuple[str, pl.DataFrame]:
    """Play all runs of a cell on one core; returns its name and its results.

    This is what workers run, on this machine or another.
    """
    size = cell.arms, cell.rounds, cell.experts
    environment = _environment(cell.environment, *size, _Table(losses))
    policy = cell.policy()
    results = simulate(
        policy,
        environment,
        replicates=cell.replicates,
        seed=cell.seed,
        cores=1,
        checkpoints=cell.checkpoints,
        progress=False,
    )
    import polars as pl

    promise = policy.recipe.release.guarantee()
    curves = results.curves("policy")
    few = cell.arms <= MOST_SHARES
    rows = [
        {
            "round": int(stop),
            **statistics(curves[:, place]),
            "uniform": float(results.uniform_regret[place]),
            "releases": int(stop) // policy.batch if promise.private else 0,
            "regret": curves[:, place].tolist(),
            "shares": results.shares("policy")[place].tolist() if few else None,
        }
        for place, stop in enumerate(results.stops)
    ]
    schema = dict.fromkeys(rows[0], pl.Float64()) | {
        "round": pl.Int64(),
        "releases": pl.Int64(),
        "regret": pl.List(pl.Float64()),
        "shares": pl.List(pl.Float64()),
    }
    constant = {
        "cell": pl.lit(cell.key),
        "algorithm": pl.lit(cell.algorithm),
        "environment": pl.lit(cell.environment.label),
        "epsilon": pl.lit(cell.epsilon, dtype=pl.Float64()),
        "rounds": pl.lit(cell.rounds, dtype=pl.Int64()),
        "arms": pl.lit(cell.arms, dtype=pl.Int64()),
        "batch": pl.lit(policy.batch, dtype=pl.Int64()),
        "experts": pl.lit(cell.experts, dtype=pl.Int64()),
        "delta": pl.lit(promise.delta if promise.private else None, dtype=pl.Float64()),
        "replicates": pl.lit(cell.replicates, dtype=pl.Int64()),
        "seed": pl.lit(cell.seed, dtype=pl.Int64()),
        "model": pl.lit(promise.model),
        "against": pl.lit(results.against),
    }
    frame = pl.DataFrame(rows, schema=schema)
    return cell.key, frame.select(**constant, **{name: pl.col(name) for name in schema})


class _Table:
    """Losses on their way through the cache below, whose key has their hash already."""

    def __init__(self, losses: NDArray[np.float64] | None) -> None:
        self.losses = losses

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Table)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=4)
def _environment(
    source: Source, arms: int | None, rounds: int | None, experts: int | None, table: _Table
) -> Environment | ExpertEnvironment:
    """Make an environment once for the cells that share it: large tables take a while."""
    return source.make(arms, rounds, experts, table.losses)
