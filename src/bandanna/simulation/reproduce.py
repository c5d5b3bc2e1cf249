"""What the paper claims, measured; each reproduction ends in verdicts with their tolerance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bandanna.learners import Exp3
from bandanna.policies import BatchedBandit, PrivateBandit
from bandanna.simulation.limits import LimitsReport, check_limits
from bandanna.theory.leakage import Leakage, exp3_leakage, paper_construction, search_worse
from bandanna.types import JSON

LEAKAGE_RATE = 1e-4
"""Learning rate and mixing of the paper's figure."""


LIMITS_HEADINGS = ["policy", "gamma", "tau", "p", "(1)", "(2)", "applies", "limit", "regret"]
LIMITS_HEADINGS += ["shifted"]


class Verdict(NamedTuple):
    """One claim, what was measured, and whether it holds."""

    claim: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Reproduction:
    """A result of the paper, measured."""

    name: str
    claim: str
    headings: list[str]
    rows: list[list[str]]
    verdicts: list[Verdict]
    leakage: Leakage | None = field(default=None, repr=False)

    @property
    def holds(self) -> bool:
        """Whether every verdict is that the claim holds."""
        return all(verdict.holds for verdict in self.verdicts)

    def to_dict(self) -> JSON:
        """Return everything but the curves, as plain values."""
        return {
            "name": self.name,
            "claim": self.claim,
            "rows": [dict(zip(self.headings, row, strict=True)) for row in self.rows],
            "verdicts": [verdict._asdict() for verdict in self.verdicts],
            "holds": self.holds,
        }


def reproduce_leakage(quick: bool) -> Reproduction:
    """The paper's figure: P_t(2) of EXP3 on two neighbouring sequences runs apart."""
    rate = 1e-3 if quick else LEAKAGE_RATE
    rounds = round(100 / rate)
    learner = Exp3(2, learning_rate=rate, mixing=rate)
    leakage = exp3_leakage(learner, *paper_construction(rounds))
    stops = np.unique(np.geomspace(2, rounds, 13).astype(int)) - 1
    rows = [
        [
            f"{t + 1:,}",
            f"{leakage.first[t]:.6f}",
            f"{leakage.second[t]:.6f}",
            f"{leakage.per_round[t]:.5f}",
            f"{np.abs(leakage.along[: t + 1]).max():.4f}",
        ]
        for t in stops
    ]
    small = Exp3(2, learning_rate=0.01, mixing=0.01)
    paper = float(np.abs(exp3_leakage(small, *paper_construction(2000)).along).max())
    worse = search_worse(small, 2000)[0]
    first, second = leakage.first[-1], leakage.second[-1]
    early, late = leakage.per_round[1], leakage.per_round[-1]
    return Reproduction(
        name="leakage",
        claim=f"EXP3's privacy loss grows with t (eta = gamma = {rate:g}, T = {rounds:,})",
        headings=["round", "P_t(2)", "P'_t(2)", "loss of the round", "largest loss so far"],
        rows=rows,
        verdicts=[
            Verdict(
                "P_t(2) tends to 1 - gamma/2, within gamma/10",
                f"{first:.7f}",
                bool(abs(first - (1 - rate / 2)) < rate / 10),
            ),
            Verdict(
                "P'_t(2) tends to gamma/2, within gamma/10",
                f"{second:.3g}",
                bool(abs(second - rate / 2) < rate / 10),
            ),
            Verdict(
                "the loss of a round grows a thousandfold and more",
                f"from {early:.2g} in round 2 to {late:.3g}",
                bool(late > 1000 * early),
            ),
            Verdict(
                "a search finds worse sequences than the paper's (eta = gamma = 0.01, T = 2,000)",
                f"total loss {worse:,.0f} against {paper:.2f}",
                bool(worse > paper),
            ),
        ],
        leakage=leakage,
    )


def reproduce_limits(quick: bool) -> Reproduction:
    """The Lemma on limits: its conditions and its bound, for three policies."""
    rounds, replicates = (100_000, 200) if quick else (1_000_000, 400)
    epsilon = 0.1
    policies: dict[str, BatchedBandit] = {
        "htinf": PrivateBandit(2, epsilon, rounds, "htinf"),
        "one-bit": PrivateBandit(2, epsilon, rounds),
        "eager exp3": PrivateBandit(2, epsilon, learner=Exp3(2, 0.1, 0.002), release="laplace"),
    }
    reports = {
        name: check_limits(policy, rounds, replicates=replicates)
        for name, policy in policies.items()
    }
    return Reproduction(
        name="limits",
        claim=f"limits of private bandits, epsilon = {epsilon:g}, T = {rounds:,}",
        headings=LIMITS_HEADINGS,
        rows=[_limits_row(name, report) for name, report in reports.items()],
        verdicts=[
            Verdict(
                f"{name}: worst measured regret is at least the Lemma's bound, within 4 s.e.",
                f"{max(report.regret, report.shifted_regret):,.0f} against "
                f"{report.limit.regret:,.0f}"
                + ("" if report.applies else "; its conditions do not hold, so nothing was owed"),
                report.respected or not report.applies,
            )
            for name, report in reports.items()
        ],
    )


def _limits_row(name: str, report: LimitsReport) -> list[str]:
    return [
        name,
        f"{report.gamma:.2g}",
        f"{report.tau:,}",
        f"{report.p}",
        f"{report.plays_enough.share:.2f}",
        f"{report.drops_quickly.share:.2f}",
        "yes" if report.applies else "no",
        f"{report.limit.regret:,.0f}",
        f"{report.regret:,.0f}",
        f"{report.shifted_regret:,.0f}",
    ]


REPRODUCTIONS: dict[str, tuple[str, Callable[[bool], Any]]] = {
    "leakage": ("EXP3 without noise leaks more and more (the paper's figure)", reproduce_leakage),
    "limits": ("no private algorithm of a certain kind has small regret", reproduce_limits),
}
