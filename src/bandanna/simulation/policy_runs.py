"""All runs of one policy, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.grid import UNITS
from bandanna.learners import Compiled
from bandanna.policy import Recipe
from bandanna.simulation.engine import Run

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Guard(NamedTuple):
    """What a guard against changing losses said."""

    alarms: float
    """Share of the runs in which it fired."""
    false_alarm: float
    """Probability with which it would fire, at most, if nothing changed."""

    def __str__(self) -> str:
        return (
            f"fired in {self.alarms:.1%} of the runs; where losses are steady it fires with "
            f"probability at most {self.false_alarm:g}"
        )


class Answers(NamedTuple):
    """Which arm each run named as the best, and when."""

    winners: Integers
    """Shape (runs,); -1 where none was named in time."""
    rounds: Integers
    """After how many rounds, shape (runs,); -1 where none was."""

    def wrong(self, best: int | None) -> float | None:
        """Return the share of runs that named another arm than the best; None without one."""
        return (
            None if best is None else float(((self.winners >= 0) & (self.winners != best)).mean())
        )

    def words(self, best: int | None) -> str:
        """Say when answers came and how many were wrong."""
        named = self.winners >= 0
        if not named.any():
            return "no run named a best arm in time"
        when = self.rounds[named]
        wrong = self.wrong(best)
        error = "" if wrong is None else f"; {wrong:.1%} of the runs named a wrong one"
        return (
            f"{named.mean():.1%} of the runs named a best arm, after {when.mean():,.0f} rounds on "
            f"average (90% by {np.quantile(when, 0.9):,.0f}){error}"
        )


class Retired(NamedTuple):
    """Which arms guardrails retired in each run, and which of them truly were beyond theirs."""

    rounds: Integers
    """After how many rounds, shape (runs, arms); -1 where an arm was not retired."""
    beyond: NDArray[np.bool_]
    """Whether each arm is further from the control than its guardrail allows, shape (arms,)."""

    @property
    def rightly(self) -> float | None:
        """The share of arms that are beyond it and were retired; None where there are none."""
        return float((self.rounds[:, self.beyond] >= 0).mean()) if self.beyond.any() else None

    @property
    def wrongly(self) -> float:
        """The share of runs in which an arm was retired that is not beyond it."""
        return float((self.rounds[:, ~self.beyond] >= 0).any(axis=1).mean())

    def words(self) -> str:
        """Say what guardrails did."""
        wrong = f"arms within their guardrail were retired in {self.wrongly:.1%} of the runs"
        if self.rightly is None:
            return f"no arm is beyond its guardrail; {wrong}"
        when = self.rounds[:, self.beyond]
        when = when[when >= 0]
        after = f", after {when.mean():,.0f} rounds on average" if when.size else ""
        return f"arms beyond their guardrail were retired in {self.rightly:.1%}{after}; {wrong}"


@dataclass(frozen=True)
class PolicyRuns:
    """All runs of one policy."""

    regret: Floats
    """Regret before each checkpoint, shape (runs, checkpoints)."""
    plays: Integers
    """Rounds each arm was played, shape (runs, arms)."""
    shares: Floats
    """Share of the rounds so far in which each arm was played, mean over runs, shape
    (checkpoints, arms)."""
    leaders: Integers
    """The arm played most often before each checkpoint, shape (runs, checkpoints)."""
    released: Floats
    """Each arm's mean loss as the releases tell it, shape (runs, arms); NaN where nothing was
    released of it."""
    batch: int
    guard: Guard | None = None
    switched: float | None = None
    """Share of the runs in which the net took over; None where there is none."""
    answers: Answers | None = None
    """Where it looks for the best arm."""
    reward: Floats | None = None
    """Mean reward of a round, in people's units, shape (runs,)."""
    retired: Retired | None = None
    """Where there are guardrails."""


def policy_runs(
    results: Sequence[Run],
    best: Floats,
    stops: Integers,
    recipe: Recipe,
    span: float = 1.0,
    high: float = 1.0,
) -> PolicyRuns:
    """Put runs together; ``best`` is what regret is measured against, before each checkpoint.

    ``span`` is what a loss of 1 is in people's units, ``high`` the largest reward.
    """
    release = recipe.release
    losses = np.array([run.losses for run in results]) / UNITS
    published, rounds = np.moveaxis(np.array([run.published for run in results]), 1, 0)
    with np.errstate(invalid="ignore"):
        released = release.mean_loss(published / rounds)
    return PolicyRuns(
        regret=(losses - best) * span,
        plays=np.array([run.plays for run in results]),
        shares=np.sum([run.played for run in results], axis=0) / (len(results) * stops[:, None]),
        leaders=np.array([run.played.argmax(axis=1) for run in results]),
        released=released,
        batch=release.batch,
        guard=_guard(results, recipe),
        switched=_switched(results),
        answers=_answers(results),
        reward=high - span * losses[:, -1] / stops[-1],
    )


def _switched(results: Sequence[Run]) -> float | None:
    switched = np.array([run.switched[0] for run in results])
    return None if np.any(switched < 0) else float(switched.mean())


def _answers(results: Sequence[Run]) -> Answers | None:
    found = np.array([run.answer for run in results])
    return None if (found[:, 0] == -2).all() else Answers(found[:, 0], found[:, 1])


def _guard(results: Sequence[Run], recipe: Recipe) -> Guard | None:
    learner = recipe.learner
    guard = learner.report(learner.start()).guard if isinstance(learner, Compiled) else None
    if guard is None or not guard["guard"]:
        return None
    return Guard(float(np.mean([run.alarm[0] for run in results])), guard["false_alarm"])


def statistics(regret: Floats) -> dict[str, float]:
    """Summarise one number for each run: mean, standard error and quantiles."""
    error = regret.std(ddof=1) / np.sqrt(regret.size) if regret.size > 1 else float("nan")
    found = {"mean": float(regret.mean()), "standard_error": float(error)}
    quantiles = np.quantile(regret, QUANTILES)
    return found | {
        f"q{q * 100:02.0f}": float(v) for q, v in zip(QUANTILES, quantiles, strict=True)
    }
