"""What a simulation found: regret of every run, and tables people read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bandanna.environments.base import COMPARATORS, Comparator
from bandanna.extras import need, plugin
from bandanna.grid import UNITS
from bandanna.html import paragraph, table
from bandanna.privacy import Release
from bandanna.simulation.engine import Run
from bandanna.types import InputError

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


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


def policy_runs(
    results: Sequence[Run], best: Floats, stops: Integers, release: Release, span: float = 1.0
) -> PolicyRuns:
    """Put runs together; ``best`` is what regret is measured against, before each checkpoint.

    ``span`` is what a loss of 1 is in people's units.
    """
    published, rounds = np.moveaxis(np.array([run.published for run in results]), 1, 0)
    with np.errstate(invalid="ignore"):
        released = release.mean_loss(published / rounds)
    return PolicyRuns(
        regret=(np.array([run.losses for run in results]) / UNITS - best) * span,
        plays=np.array([run.plays for run in results]),
        shares=np.sum([run.played for run in results], axis=0) / (len(results) * stops[:, None]),
        leaders=np.array([run.played.argmax(axis=1) for run in results]),
        released=released,
        batch=release.batch,
    )


def statistics(regret: Floats) -> dict[str, float]:
    """Summarise one number for each run: mean, standard error and quantiles."""
    error = regret.std(ddof=1) / np.sqrt(regret.size) if regret.size > 1 else float("nan")
    found = {"mean": float(regret.mean()), "standard_error": float(error)}
    quantiles = np.quantile(regret, QUANTILES)
    return found | {
        f"q{q * 100:02.0f}": float(v) for q, v in zip(QUANTILES, quantiles, strict=True)
    }


@dataclass(frozen=True, repr=False)
class Results:
    """Runs of several policies in one environment.

    Regret is the policy's total loss minus that of the best fixed arm; ``against`` says what that
    means here: on the same losses, in expectation where the losses are random, or on the losses
    realised in the run where the adversary adapts to it.
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
    arm_names: tuple[str, ...] = ()
    about: str = ""
    """How data were used, where there were any."""

    @property
    def against(self) -> str:
        """What the regret is measured against, in words."""
        return COMPARATORS[self.comparator]

    def regret(self, policy: str) -> Floats:
        """Return the final regret of each run, shape (runs,)."""
        return self._of(policy).regret[:, -1]

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
        """Return one row for each policy, in plain values: the content of ``table``."""
        uniform = float(self.uniform_regret[-1])
        rows: list[dict[str, float | str]] = []
        for name, runs in self.runs.items():
            final = runs.regret[:, -1]
            row: dict[str, float | str] = {"policy": name, "batch": runs.batch}
            row |= statistics(final)
            row["share_of_uniform"] = float(final.mean()) / uniform if uniform else float("nan")
            rows.append(row)
        return rows

    def table(self) -> pl.DataFrame:
        """Return mean, standard error, quantiles, and the share of the uniform player's regret."""
        need("studies", "Results.table()")
        import polars as pl

        return pl.DataFrame(self.summary())

    def __repr__(self) -> str:
        runs = len(next(iter(self.runs.values())).plays)
        lines = [f"Regret after {self.rounds:,} rounds, {runs} runs, against {self.against}:"]
        if self.about:
            lines.append(f"  ({self.about})")
        width = max(len(name) for name in self.runs)
        others = "random experts" if self.comparator == "experts" else "uniform"
        for row in self.summary():
            lines.append(
                f"  {row['policy']:{width}}  mean {row['mean']:,.1f} (s.e. "
                f"{row['standard_error']:,.1f}), median {row['q50']:,.1f}, 5% to 95%: "
                f"{row['q05']:,.1f} to {row['q95']:,.1f}, {row['share_of_uniform']:.1%} of {others}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        headings = ["policy", "batch", "mean", "s.e.", "5%", "median", "95%", "of uniform"]
        keys = ("mean", "standard_error", "q05", "q50", "q95")
        rows = [
            [
                str(row["policy"]),
                f"{row['batch']:,}",
                *(f"{row[key]:,.1f}" for key in keys),
                f"{row['share_of_uniform']:.1%}",
            ]
            for row in self.summary()
        ]
        said = f"Regret after {self.rounds:,} rounds, against {self.against}"
        return table(said, headings, rows) + paragraph(self.about)

    def plot(self) -> object:
        """Return an Altair chart: mean regret as it grows, and where nine runs of ten are."""
        draw = plugin("report", "bandanna.report.results_chart", "Results.plot()")
        chart: object = draw.results_chart(self)
        return chart

    def _of(self, policy: str) -> PolicyRuns:
        if policy not in self.runs:
            raise InputError(f"no policy {policy!r} here; there are {', '.join(self.runs)}.")
        return self.runs[policy]
