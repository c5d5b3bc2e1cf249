"""A cell: one algorithm in one setting, all its runs, and the name of its results.

A cell's name is a hash of everything its numbers depend on, so equal cells of different studies
are the same file and a changed cell is another one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

from bandanna._core.documents import seal
from bandanna._core.types import JSON, InputError
from bandanna.algorithms import has_constants
from bandanna.environments import Environment, ExpertEnvironment
from bandanna.policy import Policy
from bandanna.simulation.arguments import seconds_of
from bandanna.simulation.baselines import make_policy
from bandanna.simulation.online import metric_worlds, plays_online
from bandanna.spec import Problem
from bandanna.studies.contexts import CONTEXTUAL, ROUND_SECONDS, WITHOUT_PRIVACY, promise_of
from bandanna.studies.environments import Data, Source
from bandanna.studies.schema import AXES, OWN, Setting, is_private

RESULTS_VERSION = 12
"""Raise this whenever the same settings would give other numbers, or the columns change."""

PART_SECONDS = 10.0


class Skipped(NamedTuple):
    """A combination of the grid that cannot apply."""

    values: JSON
    reason: str


@dataclass(frozen=True)
class Cell(Setting):  # type: ignore[misc]
    """Everything that determines the numbers of one algorithm in one setting."""

    rounds: int
    arms: int
    replicates: int
    seed: int
    checkpoints: int
    options: JSON | None = None
    """Further parameters of private policies without experts."""
    metrics: JSON | None = None
    """By metric, its mean for each arm."""

    @classmethod
    def of(
        cls,
        asked: Setting,
        *,
        replicates: int,
        seed: int,
        checkpoints: int,
        options: JSON | None = None,
        metrics: JSON | None = None,
    ) -> Cell:
        """Fill in what the environment decides, and refuse a combination that cannot apply."""
        environment = asked.environment.make(asked.arms, asked.rounds, asked.experts)
        values = {name: getattr(asked, name) for name in AXES}
        if not is_private(asked.algorithm):
            values |= {name: None for name, axis in AXES.items() if axis.shown.private}
        if not has_constants(asked.algorithm):
            values["constants"] = None
        values |= {"arms": environment.arms, "rounds": environment.rounds}
        values["experts"] = environment.experts
        cell = cls(**values, replicates=replicates, seed=seed, checkpoints=checkpoints)
        if options and is_private(asked.algorithm):
            if environment.experts is not None:
                raise InputError("[policy] is for policies without experts.")
            if cell.contextual:
                raise InputError("[policy] is for policies that do not decide by context.")
            cell = replace(cell, options=dict(options), metrics=dict(metrics or {}) or None)
        if cell.contextual:
            promise_of(cell)  # refuses what it cannot do
            return cell
        policy = cell.policy()
        if policy.spec.adjust is not None:
            raise InputError(
                "studies have no values that were known before: leave adjust out, or use "
                "bd.simulate(..., before=...)."
            )
        if plays_online(policy):
            metric_worlds(cell.algorithm, policy, cell.metrics or {}, cell.arms, cell.rounds)
        return cell

    @property
    def contextual(self) -> bool:
        """Whether its policy decides by context."""
        return self.algorithm in (*CONTEXTUAL, WITHOUT_PRIVACY)

    @property
    def key(self) -> str:
        """The name of the cell's file."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in ("options", "metrics"):
            if values[name] is None:  # cells without have the names that they always had
                del values[name]
        return seal(
            {"numbers": RESULTS_VERSION, **values, "environment": self.environment.identity()}
        )[:32]

    def make_environment(self) -> Environment | ExpertEnvironment:
        """Make the environment."""
        source: Source = self.environment
        return source.make(self.arms, self.rounds, self.experts)

    def policy(self) -> Policy:
        """Make the policy."""
        epsilon = math.inf if self.epsilon is None else self.epsilon
        problem = Problem(self.arms, self.rounds, epsilon, self.experts, self.delta or 0.0)
        loss_range = self.environment.loss_range
        known = {*OWN, "arms", "rounds", "epsilon", "experts", "delta"}
        further = {name: getattr(self, name) for name in AXES if name not in known}
        given = {name: value for name, value in further.items() if value is not None}
        given |= self.options or {}
        return make_policy(self.algorithm, problem, loss_range=loss_range, **given)

    def carrying(self, data: Data | None) -> Cell:
        """Return the cell with its file's losses, or without: they travel by themselves."""
        moved: JSON = {"environment": replace(self.environment, data=data)}
        return replace(self, **moved)

    @cached_property
    def run_seconds(self) -> float:
        """A guess how long one run takes on one core: right within a factor of five or so."""
        if self.contextual:
            return ROUND_SECONDS * self.rounds
        return seconds_of([self.policy()], self.rounds)

    def parts(self) -> list[Shard]:
        """Split the runs into parts of some seconds each, which are kept when they are finished."""
        runs = math.ceil(PART_SECONDS / self.run_seconds)
        if runs < self.replicates:
            # What runs share is done again for every part: an adversary's uniform player, advice.
            comparator = self.make_environment().comparator
            runs = max(runs, {"adaptive": 200, "experts": 10}.get(comparator, 1))
        starts = range(0, self.replicates, runs)
        return [Shard(self, start, min(runs, self.replicates - start)) for start in starts]


class Shard(NamedTuple):
    """Some of a cell's runs."""

    cell: Cell
    first: int
    runs: int

    @property
    def whole(self) -> bool:
        """Whether these are all of them."""
        return self.runs == self.cell.replicates

    @property
    def key(self) -> str:
        """The name of the part's file."""
        return f"{self.cell.key}-{self.first}-{self.runs}"

    def seconds(self) -> float:
        """Guess how long it takes."""
        return self.runs * self.cell.run_seconds
