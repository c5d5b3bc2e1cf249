"""What one algorithm guarantees for one problem, or why nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from bandanna._core.types import JSON, InputError, Model
from bandanna.problem import Problem
from bandanna.theory.algorithm import Algorithm, Bound


@dataclass(frozen=True)
class Row:
    """One algorithm for one problem: its guarantee, or why there is none."""

    algorithm: str
    entry: Algorithm
    """Its row in the catalogue."""
    problem: Problem
    bound: Bound | None
    reason: str = ""

    @property
    def model(self) -> Model:
        """Who sees feedback."""
        return self.entry.model(None if self.bound is None else self.bound.batch)

    @cached_property
    def delta(self) -> float:
        """What it spends of the problem's delta."""
        if self.bound is None:
            return self.problem.delta if self.entry.needs_delta else 0.0
        return self.entry.delta(self.problem)

    @property
    def regret(self) -> float:
        """The guarantee; infinite where there is none."""
        return float("inf") if self.bound is None else self.bound.regret

    @property
    def share(self) -> float:
        """The guarantee as a share of the rounds."""
        return self.regret / (self.problem.rounds or 1)

    @property
    def vacuous(self) -> bool:
        """Whether the guarantee says nothing: playing any arm, every one as often, keeps it too."""
        return self.share >= any_arm(self.problem)

    def to_dict(self) -> JSON:
        """Return stable keys for JSON."""
        shown: JSON = {"algorithm": self.algorithm, "model": self.model, "delta": self.delta}
        if self.bound is None:
            empty = dict.fromkeys(("batch", "bound", "share", "vacuous"))
            return {**shown, **empty, "reason": self.reason}
        numbers = {"batch": self.bound.batch, "bound": self.regret, "share": self.share}
        why = {"source": self.bound.source, "settings": self.bound.settings}
        return {**shown, **numbers, "vacuous": self.vacuous, **why}


def any_arm(problem: Problem) -> float:
    """Return the share of the rounds that choosing at random loses at most, ``1 - 1/K``."""
    return 1.0 - 1.0 / problem.arms


def row_of(entry: Algorithm, problem: Problem, batch: int | None = None) -> Row:
    """Return what an algorithm guarantees for a problem, or why nothing."""
    try:
        return Row(entry.name, entry, problem, entry.bounded(problem, batch))
    except InputError as error:
        return Row(entry.name, entry, problem, None, f"has no bound here: {error}")


def percent(share: float) -> str:
    """Write a share of the rounds as a percentage, small ones with two digits.

    Examples
    --------
    >>> percent(0.0321), percent(0.000004)
    ('3.2%', '0.00040%')
    """
    if share >= 0.0005 or share <= 0.0:
        return f"{share:.1%}"
    digits = -math.floor(math.log10(share)) - 1
    return f"{share:.{digits}%}"
