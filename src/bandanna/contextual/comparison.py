"""Both promises on one table, beside no privacy and the best single arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bandanna._core import checks
from bandanna._core.types import JSON
from bandanna.contextual.simulation import ContextRun, ContextTable, simulate_context
from bandanna.privacy.epochs import PROTECTS, Protects

NO_PRIVACY = "no privacy"
SINGLE = "best single arm"
PARTS = 25
HEADINGS = ("protects", "reward", "s.e.", "in the last fifth", "s.e.")
"""Headings of ``ContextComparison.table``."""


@dataclass(frozen=True)
class Measured:
    """A mean over runs."""

    mean: float
    error: float
    """Standard error; NaN of a single run."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Measured:
        """Take one value a run."""
        many = len(values) > 1
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if many else math.nan
        return cls(float(np.mean(values)), error)

    @property
    def cells(self) -> list[str]:
        """It, and its error, as a table shows them."""
        return [f"{self.mean:.3f}", "-" if math.isnan(self.error) else f"{self.error:.4f}"]


@dataclass(frozen=True)
class CurvePoint:
    """Reward in one part of the run."""

    round: int
    """Its last round."""
    reward: Measured


@dataclass(frozen=True)
class ContextRow:
    """What one promise earns, or no privacy."""

    protects: str
    reward: Measured
    """In all rounds."""
    last_fifth: Measured
    curve: tuple[CurvePoint, ...]

    @classmethod
    def of(cls, name: str, runs: Sequence[ContextRun], parts: int = PARTS) -> ContextRow:
        """Average runs."""
        curves = [run.curve(parts) for run in runs]
        ends = [end for end, _ in curves[0]]
        return cls(
            name,
            Measured.of([run.reward for run in runs]),
            Measured.of([run.last_fifth for run in runs]),
            tuple(
                CurvePoint(end, Measured.of([curve[k][1] for curve in curves]))
                for k, end in enumerate(ends)
            ),
        )


@dataclass(frozen=True)
class ContextComparison:
    """Rewards of contextual policies on a table: a simulation, which protects nobody."""

    rows: tuple[ContextRow, ...]
    single: float
    """Mean reward of the best single arm, which a policy without context earns at most."""
    epsilon: float
    delta: float
    rounds: int
    replicates: int
    seed: int
    arms: int
    features: int
    """Numbers that a context is encoded in."""
    about: str
    """Where the rewards of all arms come from."""

    @property
    def sentence(self) -> str:
        """What was found, in a sentence."""
        said = [
            f"{row.last_fifth.mean:.3f} with {row.protects} protected"
            if row.protects in PROTECTS
            else f"{row.last_fifth.mean:.3f} without privacy"
            for row in self.rows
        ]
        return (
            f"In the last fifth of {self.rounds:,} rounds a person's reward is "
            f"{', '.join(said)}; the best single arm has {self.single:.3f}."
        )

    @property
    def table(self) -> list[list[str]]:
        """What was measured, the best single arm last."""
        rows = [[row.protects, *row.reward.cells, *row.last_fifth.cells] for row in self.rows]
        level = Measured(self.single, math.nan).cells
        return [*rows, [SINGLE, *level, *level]]

    def to_dict(self) -> JSON:
        """Return everything as plain values."""
        names = ("single", "epsilon", "delta", "rounds", "replicates", "seed", "arms", "features")
        return {name: getattr(self, name) for name in (*names, "about", "sentence")} | {
            "rows": [
                {
                    "protects": row.protects,
                    "reward": row.reward.mean,
                    "reward_error": row.reward.error,
                    "last_fifth": row.last_fifth.mean,
                    "last_fifth_error": row.last_fifth.error,
                    "curve": [[point.round, point.reward.mean] for point in row.curve],
                }
                for row in self.rows
            ]
        }


def compare_promises(
    table: ContextTable,
    epsilon: float,
    delta: float = 1e-6,
    rounds: int = 100_000,
    *,
    replicates: int = 5,
    seed: int = 0,
    bernoulli: bool = False,
) -> ContextComparison:
    """Play both promises and no privacy against a table, each several times.

    Parameters
    ----------
    table, epsilon, delta, rounds, bernoulli
        As for ``simulate_context``.
    replicates
        Runs of each.
    seed
        Of the first run; the others have the next ones.

    Examples
    --------
    >>> import numpy as np
    >>> plan = np.array(["bronze", "gold"] * 250)
    >>> rewards = np.stack([plan == "bronze", plan == "gold"], axis=1) * 0.5
    >>> table = ContextTable.from_rewards({"plan": plan}, {"plan": ["bronze", "gold"]}, rewards)
    >>> found = compare_promises(table, epsilon=1.0, rounds=5_000, replicates=2)
    >>> [row.protects for row in found.rows]
    ['feedback', 'context and feedback', 'no privacy']
    >>> all(row.last_fifth.mean > 0.4 > found.single for row in found.rows)
    True
    """
    count = checks.whole("replicates", replicates, 1)
    promises: tuple[Protects | None, ...] = (*PROTECTS, None)
    rows = []
    for protects in promises:
        asked = None if protects is None else epsilon, delta, rounds, protects or "feedback"
        runs = [
            simulate_context(table, *asked, seed=seed + k, bernoulli=bernoulli)
            for k in range(count)
        ]
        rows.append(ContextRow.of(protects or NO_PRIVACY, runs))
    return ContextComparison(
        tuple(rows),
        runs[0].single,
        epsilon,
        delta,
        rounds,
        count,
        seed,
        table.arms,
        table.encoder.size,
        table.about,
    )
