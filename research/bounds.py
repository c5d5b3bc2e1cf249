"""The paper's table of upper bounds, as numbers at chosen sizes, and measured regret below them."""

from __future__ import annotations

import math

from bandanna._core.types import JSON
from bandanna.algorithms import find
from bandanna.planner.plan import row_of
from bandanna.policy import PrivateBandit
from bandanna.spec import Problem
from research import Reproduction, Verdict, frozen_settings
from research.rates import worst_regret

BANDITS = ("prior work, no constants", "paper, no constants", "prior work", "paper", "one-bit")
EXPERTS = ("htinf", "local-exp4", "batched-exp4")


def reproduce(quick: bool) -> Reproduction:
    """Evaluate the table at every size, compare, and simulate where it is cheap enough."""
    settings = frozen_settings("bounds", quick)
    rows, better = [], []
    for arms, rounds, epsilon in settings["sizes"]:
        prior, ours = _table_rates(arms, rounds, epsilon)
        problem = Problem(arms, rounds, epsilon)
        numbers: list[float | None] = [prior, ours]
        numbers += [_number(name, problem) for name in ("ldp-exp3", "htinf", "one-bit")]
        rows += [
            _row("bandits", f"K {arms:,}, T {rounds:.0e}, eps {epsilon:g}", name, value, rounds)
            for name, value in zip(BANDITS, numbers, strict=True)
        ]
        better.append(prior / ours)
    for experts, arms, rounds, epsilon in settings["expert_sizes"]:
        setting = f"N {experts:,}, K {arms}, T {rounds:.0e}, eps {epsilon:g}"
        problem = Problem(arms, rounds, epsilon, experts, settings["delta"])
        rows += [_row("experts", setting, name, _number(name, problem), rounds) for name in EXPERTS]
    verdicts = [
        Verdict(
            "the paper's rate is below prior work's at every size (constants left out)",
            f"{min(better):,.1f} to {max(better):,.1f} times smaller at {len(better)} sizes",
            "none",
            min(better) > 1.0,
        )
    ]
    verdicts += _measured(settings)
    return Reproduction(
        name="bounds",
        claim="the table of upper bounds",
        headings=["problem", "size", "bound", "regret", "of the rounds"],
        rows=rows,
        verdicts=verdicts,
        settings=settings,
    )


def _table_rates(arms: int, rounds: int, epsilon: float) -> tuple[float, float]:
    """Return the table's first row, as printed: prior work's rate and the paper's."""
    prior = math.sqrt(arms * rounds * math.log(arms * rounds)) / epsilon
    return prior, math.sqrt(arms * rounds / epsilon)


def _number(name: str, problem: Problem) -> float | None:
    bound = row_of(find(name, with_experts=problem.with_experts), problem).bound
    return None if bound is None else bound.regret


def _row(problem: str, size: str, name: str, value: float | None, rounds: int) -> list[str]:
    if value is None:
        return [problem, size, name, "-", "does not apply"]
    share = value / rounds
    return [problem, size, name, f"{value:,.0f}", f"{share:.1%}" if share < 1 else "says nothing"]


def _measured(settings: JSON) -> list[Verdict]:
    """Measure the worst regret at one size and compare it with what is proved."""
    arms, rounds, epsilon = settings["measured_size"]
    verdicts = []
    for name in ("htinf", "exp3", "one-bit"):
        proved = row_of(find(name, with_experts=False), Problem(arms, rounds, epsilon)).regret
        found = worst_regret(
            PrivateBandit(arms, epsilon, rounds, name),
            rounds,
            epsilon,
            settings["gaps"],
            settings["replicates"],
            settings["seed"],
        )
        verdicts.append(
            Verdict(
                f"{name}: measured regret is below its bound (K {arms}, T {rounds:.0e}, "
                f"eps {epsilon:g})",
                f"{found.mean:,.0f} (s.e. {found.error:,.0f}) against {proved:,.0f}, "
                f"{proved / found.mean:.1f} times more",
                "4 standard errors",
                found.mean + 4 * found.error < proved,
            )
        )
    return verdicts
