"""What a simulation found: all runs of each policy, their regret, and tables people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.extras import need
from bandanna._core.grid import UNITS
from bandanna._core.html import paragraph, table
from bandanna._core.tabular import Cell, Tabular
from bandanna._core.types import ArmName, InputError
from bandanna.environments.base import COMPARATORS, Comparator
from bandanna.environments.log import UNPROTECTED, LogSample
from bandanna.learners.base import Report
from bandanna.policy import Recipe
from bandanna.simulation.engine import Run

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class GuardRecord(NamedTuple):
    """What a guard against changing losses said."""

    fired: tuple[bool, ...]
    """Whether it fired, by run."""
    false_alarm: float
    """Probability with which it should fire, at most, if nothing changed."""

    @property
    def alarms(self) -> float:
        """Share of the runs in which it fired."""
        return sum(self.fired) / len(self.fired)

    def __str__(self) -> str:
        return (
            f"fired in {self.alarms:.1%} of the runs; it is designed to fire with probability at "
            f"most {self.false_alarm:g} where losses are steady"
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

    def summary(self, best: int | None) -> dict[str, float | None]:
        """Return how many runs named an arm, after how many rounds, and how many a wrong one."""
        named = self.winners >= 0
        return {
            "answered": float(named.mean()),
            "rounds_to_answer": float(self.rounds[named].mean()) if named.any() else None,
            "wrong_answers": self.wrong(best),
        }

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

    def summary(self) -> dict[str, float | None]:
        """Return how many arms were retired that are beyond it, and in how many runs others."""
        return {"retired": self.rightly, "wrongly_retired": self.wrongly}

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
    guard: GuardRecord | None = None
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
    beyond: NDArray[np.bool_] | None = None,
) -> PolicyRuns:
    """Put runs together; ``best`` is what regret is measured against, before each checkpoint.

    ``span`` is what a loss of 1 is in people's units, ``high`` the largest reward; ``beyond`` are
    the arms further from the control than a guardrail allows, where there are guardrails.
    """
    release = recipe.release
    answers = np.array([run.answer for run in results])
    reports = [run.report for run in results if run.report is not None]
    switched = [bool(one.net["switched"]) for one in reports if one.net is not None]
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
        guard=_guard(reports),
        switched=sum(switched) / len(switched) if switched else None,
        answers=None if (answers < -1).all() else Answers(*answers.T),
        reward=high - span * losses[:, -1] / stops[-1],
        retired=None if beyond is None else Retired(np.array([r.retired for r in results]), beyond),
    )


def _guard(reports: Sequence[Report]) -> GuardRecord | None:
    guards = [one.guard for one in reports if one.guard is not None and one.guard["guard"]]
    if not guards:
        return None
    return GuardRecord(tuple(bool(one["alarm"]) for one in guards), guards[0]["false_alarm"])


def statistics(regret: Floats) -> dict[str, float]:
    """Summarise one number for each run: mean, standard error and quantiles."""
    error = regret.std(ddof=1) / np.sqrt(regret.size) if regret.size > 1 else float("nan")
    numbers = {"mean": float(regret.mean()), "standard_error": float(error)}
    quantiles = np.quantile(regret, QUANTILES)
    return numbers | {
        f"q{q * 100:02.0f}": float(v) for q, v in zip(QUANTILES, quantiles, strict=True)
    }


def share_text(share: float | str | None) -> str:
    """Write a share of uniform play's regret; below zero it says only that.

    Examples
    --------
    >>> share_text(0.123), share_text(-9.6), share_text(float("nan"))
    ('12.3%', 'below 0%', '-')
    """
    if not isinstance(share, float) or share != share:  # noqa: PLR0124  # NaN
        return "-"
    return f"{share:.1%}" if share >= 0.0 else "below 0%"


@dataclass(frozen=True, repr=False)
class Results(Tabular):
    """Runs of several policies in one environment.

    Regret is the policy's total loss minus that of the best fixed arm; ``against`` says what that
    means here: on the same losses, in expectation where the losses are random, or on the losses
    realised in the run where the adversary adapts to it.

    Examples
    --------
    >>> import bandanna as bd, numpy as np
    >>> results = bd.simulate(bd.Bandit(2), np.tile([0.1, 0.9], (1000, 1)), replicates=20)
    >>> results.rounds, results.plays("policy").shape
    (1000, (20, 2))
    >>> bool(results.regret("policy").mean() < results.uniform_regret[-1])
    True
    """

    runs: dict[str, PolicyRuns]
    rounds: int
    stops: Integers
    """Checkpoints: numbers of rounds played."""
    comparator: Comparator
    uniform_regret: Floats
    """Expected regret of choosing at random, an arm or, with experts, one of them to follow,
    before each checkpoint."""
    best_arm: int | None = None
    """The arm regret is measured against at the end, where it is the same in all runs."""
    best_expert: int | None = None
    """With experts, the one that regret is measured against at the end."""
    best_reward: float | None = None
    """Mean reward of a round of the arm or expert that regret is measured against."""
    arm_names: tuple[str, ...] = ()
    expert_names: tuple[str, ...] = ()
    about: str = ""
    """How data were used, where there were any."""
    sample: LogSample | None = None
    """What the log says about its arms and how surely, where there is one."""
    ahead: Floats | None = None
    """What the best arm, or expert, of each segment loses less than the best fixed one, before
    each checkpoint; None where the best does not change."""
    segments: int = 1
    """How many segments there are."""

    @property
    def against(self) -> str:
        """What the regret is measured against, in words."""
        return COMPARATORS[self.comparator]

    def regret(self, policy: str) -> Floats:
        """Return the final regret of each run, shape (runs,)."""
        return self._of(policy).regret[:, -1]

    def reward(self, policy: str) -> Floats:
        """Return the mean reward of a round in each run, shape (runs,).

        A reward is ``low + high`` minus the loss, for losses from ``low`` to ``high``.
        """
        rewards = self._of(policy).reward
        assert rewards is not None, "rewards were not kept"
        return rewards

    def segment_regret(self, policy: str) -> Floats:
        """Return each run's final regret against the best arm of each segment, shape (runs,).

        Where the best arm does not change it is the regret against the best fixed one.
        """
        final = self.regret(policy)
        return final if self.ahead is None else final + self.ahead[-1]

    @property
    def shows_reward(self) -> bool:
        """Whether tables show rewards: with experts, whose own rewards people know."""
        return self.comparator == "experts" and self.best_reward is not None

    def guard(self, policy: str) -> GuardRecord | None:
        """Return how often the guard of ``dp-klucb`` said that losses change."""
        return self._of(policy).guard

    def switched(self, policy: str) -> float | None:
        """Return in what share of the runs the net under ``adaptive`` took over."""
        return self._of(policy).switched

    def answers(self, policy: str) -> Answers | None:
        """Return which arm each run named as the best, and when; None where none is looked for."""
        return self._of(policy).answers

    def retired(self, policy: str) -> Retired | None:
        """Return which arms guardrails retired in each run; None where there are none."""
        return self._of(policy).retired

    def curves(self, policy: str) -> Floats:
        """Return the regret of each run before each of ``stops``, shape (runs, checkpoints)."""
        return self._of(policy).regret

    def plays(self, policy: str) -> Integers:
        """Return how many rounds each run played each arm, shape (runs, arms)."""
        return self._of(policy).plays

    def shares(self, policy: str) -> Floats:
        """Return each arm's mean share of the rounds before each of ``stops``."""
        return self._of(policy).shares

    def found(self, policy: str) -> Floats:
        """Return in what share of the runs the best arm was played most, before each checkpoint.

        NaN where there is no one best arm: with experts, and where the adversary adapts.
        """
        leaders = self._of(policy).leaders
        if self.best_arm is None:
            return np.full(leaders.shape[1], np.nan)
        shares: Floats = (leaders == self.best_arm).mean(axis=0)
        return shares

    def summary(self) -> list[dict[str, float | str]]:
        """Return one row for each policy, in plain values: mean, quantiles, share of uniform's."""
        uniform = float(self.uniform_regret[-1])
        guarded = any(runs.guard is not None for runs in self.runs.values())
        rows: list[dict[str, float | str]] = []
        for name, runs in self.runs.items():
            final = runs.regret[:, -1]
            row: dict[str, float | str] = {"policy": name, "batch": runs.batch}
            row |= statistics(final)
            row["share_of_uniform"] = float(final.mean()) / uniform if uniform > 0 else nan
            if self.ahead is not None:
                row["segment_mean"] = float(self.segment_regret(name).mean())
            if self.shows_reward:
                row["reward"] = float(self.reward(name).mean())
            found = {} if runs.answers is None else runs.answers.summary(self.best_arm)
            found |= {} if runs.retired is None else runs.retired.summary()
            row |= {what: nan if value is None else value for what, value in found.items()}
            if guarded:
                row["alarms"] = nan if runs.guard is None else runs.guard.alarms
            rows.append(row)
        return rows

    @property
    def notes(self) -> list[str]:
        """What else there is to say, in sentences: about changes, guards and nets."""
        said = [f"data: {self.about}"] if self.about else []
        if self.shows_reward and self.best_expert is not None:
            names = self.expert_names or range(self.best_expert + 1)
            said.append(
                f"the best expert, {names[self.best_expert]}, has a reward of "
                f"{self.best_reward:.4g} a round"
            )
        if self.sample is not None:
            said.append(f"log: {self.sample.sentence} {UNPROTECTED}")
        if self.ahead is not None:
            what = "expert" if self.comparator == "experts" else "arm"
            said.append(
                f"changes: the best {what} of each of {self.segments:,} segments loses "
                f"{self.ahead[-1]:,.0f} less than the best fixed one"
            )
        for name, runs in self.runs.items():
            if runs.guard is not None and runs.guard.alarms > 0.0:
                said.append(f"guard of {name}: {runs.guard}")
            if runs.switched:
                said.append(f"net of {name}: centred EXP3 took over in {runs.switched:.1%} of runs")
            if runs.answers is not None:
                said.append(f"answers of {name}: {runs.answers.words(self.best_arm)}")
            if runs.retired is not None:
                said.append(f"guardrails of {name}: {runs.retired.words()}")
        return said

    def _records(self) -> Sequence[Mapping[str, Cell]]:
        return self.summary()

    def __repr__(self) -> str:
        runs = len(next(iter(self.runs.values())).plays)
        counted = "1 run" if runs == 1 else f"{runs} runs"
        lines = [f"Regret after {self.rounds:,} rounds, {counted}, against {self.against}:"]
        lines += [f"  ({said})" for said in self.notes]
        segments = self.ahead is not None
        width = max(len(name) for name in self.runs)
        others = "random experts" if self.comparator == "experts" else "uniform"
        for row in self.summary():
            lines.append(
                f"  {row['policy']:{width}}  mean {row['mean']:,.1f} (s.e. "
                f"{row['standard_error']:,.1f}), median {row['q50']:,.1f}, 5% to 95%: "
                f"{row['q05']:,.1f} to {row['q95']:,.1f}, "
                f"{share_text(row['share_of_uniform'])} of {others}"
                + (f", against segments {row['segment_mean']:,.1f}" if segments else "")
                + (f", reward {row['reward']:.4g} a round" if self.shows_reward else "")
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        headings = ["policy", "batch", "mean", "s.e.", "5%", "median", "95%", "of uniform"]
        headings += ["against segments"] if self.ahead is not None else []
        headings += ["reward"] if self.shows_reward else []
        keys = ("mean", "standard_error", "q05", "q50", "q95")
        rows = [
            [
                str(row["policy"]),
                f"{row['batch']:,}",
                *(f"{row[key]:,.1f}" for key in keys),
                share_text(row["share_of_uniform"]),
                *([f"{row['segment_mean']:,.1f}"] if self.ahead is not None else []),
                *([f"{row['reward']:.4g}"] if self.shows_reward else []),
            ]
            for row in self.summary()
        ]
        said = f"Regret after {self.rounds:,} rounds, against {self.against}"
        return table(said, headings, rows) + "".join(map(paragraph, self.notes))

    def plot(self) -> object:
        """Return an Altair chart: mean regret as it grows, and where nine runs of ten are."""
        need("report", "Results.plot()")
        # Imported by name: report is above simulation, and imports point down only.
        chart: object = import_module("bandanna.report.charts").results_chart(self)
        return chart

    def _of(self, policy: str) -> PolicyRuns:
        if policy not in self.runs:
            raise InputError(f"no policy {policy!r} here; there are {', '.join(self.runs)}.")
        return self.runs[policy]


class SegmentResults(dict[ArmName, Results]):
    """Runs of segments, each in its own environment: results by segment."""

    @property
    def rounds(self) -> int:
        """Rounds of all segments."""
        return sum(one.rounds for one in self.values())

    def regret(self) -> Floats:
        """Return the final regret of each run, all segments together: against the best of each."""
        total: Floats = sum(one.regret("policy") for one in self.values())  # type: ignore[assignment]
        return total

    def __repr__(self) -> str:
        total = self.regret()
        lines = [
            f"Regret after {self.rounds:,} rounds in {len(self)} segments, against the best arm of "
            f"each: mean {total.mean():,.1f}"
        ]
        return "\n".join([*lines, *(f"{name}: {one!r}" for name, one in self.items())])

    def _repr_html_(self) -> str:
        return "".join(paragraph(str(name)) + one._repr_html_() for name, one in self.items())
