"""The Lemma on limits: its conditions and its bound, for three policies."""

from __future__ import annotations

from bandanna.learners import Exp3
from bandanna.policies import Policy, PrivateBandit
from bandanna.reproduce.limits_report import LimitsReport, check_limits
from bandanna.reproduce.verdicts import Reproduction, Verdict, frozen_settings

HEADINGS = ["policy", "gamma", "tau", "p", "(1)", "(2)", "applies", "limit", "regret", "shifted"]


def reproduce(quick: bool) -> Reproduction:
    """Check both conditions for each policy, and its regret against the bound."""
    settings = frozen_settings("limits", quick)
    rounds, epsilon = settings["rounds"], settings["epsilon"]
    eager = Exp3(2, *settings["eager_exp3"])
    policies: dict[str, Policy] = {
        "htinf": PrivateBandit(2, epsilon, rounds, "htinf"),
        "one-bit": PrivateBandit(2, epsilon, rounds, "one-bit"),
        "eager exp3": PrivateBandit(2, epsilon, learner=eager, release="laplace"),
    }
    reports = {
        name: check_limits(policy, rounds, replicates=settings["replicates"])
        for name, policy in policies.items()
    }
    return Reproduction(
        name="limits",
        claim=f"limits of private bandits, epsilon = {epsilon:g}, T = {rounds:,}",
        headings=HEADINGS,
        rows=[_row(name, report) for name, report in reports.items()],
        verdicts=[
            Verdict(
                f"{name}: worst measured regret is at least the Lemma's bound",
                f"{max(report.regret, report.shifted_regret):,.0f} against "
                f"{report.limit.regret:,.0f}"
                + ("" if report.applies else "; its conditions do not hold, so nothing was owed"),
                "4 standard errors",
                report.respected or not report.applies,
            )
            for name, report in reports.items()
        ],
        settings=settings,
    )


def _row(name: str, report: LimitsReport) -> list[str]:
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
