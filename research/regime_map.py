"""The paper's Table of regimes, computed: which algorithm with expert advice is best where.

The paper compares its three algorithms by their rates and recommends one for each of three
regimes of N/K, epsilon and T. Here the rates are computed over a grid of problems, and beside
them what the algorithms really guarantee, with every constant: the planner's bounds, ours
included.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from bandanna.planner.plan import plan
from bandanna.spec import Problem

RATIOS = (0.5, 10.0, 1e3, 1e5)
ROUNDS = tuple(round(10 ** (half / 2)) for half in range(6, 25))
EPSILONS = tuple(10 ** (-half / 2) for half in range(12, -1, -1))
ARMS, DELTA = 10, 1e-6


RATES: dict[str, Callable[[int, int, int, float], float]] = {
    "local-exp4": lambda N, K, T, epsilon: math.sqrt(K * T) / epsilon,
    "htinf": lambda N, K, T, epsilon: math.sqrt(N * T / epsilon),
    "batched-exp4": lambda N, K, T, epsilon: (
        N ** (1 / 6) * math.sqrt(K) * T ** (2 / 3) / epsilon ** (1 / 3) + math.sqrt(N) / epsilon
    ),
}
"""The rates of the paper's three algorithms, without constants and logarithms."""


def rates(problem: Problem) -> dict[str, float]:
    """Return the three rates at a problem."""
    return {name: rate(problem.num_experts, *problem.size) for name, rate in RATES.items()}


OURS = ", our constants"
"""After the name of an algorithm of the paper: with constants of ours."""


class Regime(NamedTuple):
    """A line of the paper's table."""

    name: str
    condition: str
    algorithm: str
    holds: Callable[[int, int, int, float], bool]

    def contains(self, problem: Problem) -> bool:
        """Whether a problem is in the regime."""
        return self.holds(problem.num_experts, *problem.size)


REGIMES = (
    Regime("few experts", "N <= K", "htinf", lambda N, K, T, epsilon: N <= K),
    Regime(
        "many experts, low privacy",
        "N >= K, eps >= K/N",
        "local-exp4",
        lambda N, K, T, epsilon: N >= K and epsilon * (N / K) >= 1.0 - 1e-9,
    ),
    Regime(
        "many experts, high privacy",
        "N >= K, eps <= 1/sqrt(T)",
        "batched-exp4",
        lambda N, K, T, epsilon: N >= K and epsilon * math.sqrt(T) <= 1.0 + 1e-9,
    ),
)


class RegimeCell(NamedTuple):
    """One problem: the best by rate, and what is guaranteed in numbers."""

    problem: Problem
    by_rate: str | None
    """Smallest of the paper's rates; None where even that is above the rounds."""
    shares: dict[str, float]
    """What each private algorithm guarantees, as a share of the rounds; from 1 on, nothing."""

    @property
    def ratio(self) -> float:
        """Experts for each arm, N/K."""
        return self.problem.num_experts / self.problem.arms

    @property
    def best(self) -> str | None:
        """The smallest guarantee of all; None where nothing is guaranteed."""
        return _smallest(self.shares)

    @property
    def papers_best(self) -> str | None:
        """The smallest guarantee of the paper's three, with its constants."""
        return _smallest({name: self.shares[name] for name in RATES if name in self.shares})


def _smallest(shares: dict[str, float]) -> str | None:
    best = min(shares, key=shares.__getitem__, default=None)
    return best if best is not None and shares[best] < 1.0 else None


class Finding(NamedTuple):
    """A line of the paper's table, and what holds of it."""

    regime: Regime
    points: int
    """Problems of the grid in the regime for which any of the three rates is below T."""
    smallest_rate: int
    """How many of them where the recommended algorithm has the smallest rate."""
    promises: int
    """How many where its guarantee, with the paper's constants, says something."""
    best: int
    """How many where that guarantee is the smallest of all."""
    guaranteed: int
    """How many where any algorithm's guarantee says something."""
    winners: dict[str, int]
    """What is best there instead, and how often."""
    times_larger: float | None
    """The recommended guarantee over the best one, median where both are numbers."""


@dataclass(frozen=True)
class RegimeMap:
    """The regimes over a grid of problems."""

    arms: int
    delta: float
    cells: list[RegimeCell]

    @property
    def findings(self) -> list[Finding]:
        """Return what holds of every line of the paper's table."""
        return [self._finding(regime) for regime in REGIMES]

    def _finding(self, regime: Regime) -> Finding:
        name = regime.algorithm
        inside = [cell for cell in self.cells if cell.by_rate and regime.contains(cell.problem)]
        known = [cell for cell in inside if cell.best is not None]
        beaten = [cell for cell in known if cell.best != name]
        ratios = [
            cell.shares[name] / min(cell.shares.values()) for cell in known if name in cell.shares
        ]
        return Finding(
            regime=regime,
            points=len(inside),
            smallest_rate=sum(cell.by_rate == name for cell in inside),
            promises=sum(cell.shares.get(name, math.inf) < 1.0 for cell in inside),
            best=len(known) - len(beaten),
            guaranteed=len(known),
            winners=dict(Counter(str(cell.best) for cell in beaten).most_common()),
            times_larger=median(ratios) if ratios else None,
        )


def regime_map(arms: int = ARMS, delta: float = DELTA, every: int = 1) -> RegimeMap:
    """Compute rates and guarantees over the grid of N/K, epsilon and T, or a part of it.

    Examples
    --------
    >>> from research.regime_map import cell_of
    >>> few = cell_of(Problem(arms=10, rounds=10**6, epsilon=0.1, experts=5, delta=1e-6))
    >>> few.by_rate, few.best
    ('htinf', 'one-bit-exp3')
    """
    problems = [
        Problem(arms, rounds, epsilon, max(2, round(ratio * arms)), delta)
        for ratio in RATIOS
        for rounds in ROUNDS[::every]
        for epsilon in EPSILONS[::every]
    ]
    return RegimeMap(arms, delta, [cell_of(problem) for problem in problems])


def cell_of(problem: Problem) -> RegimeCell:
    """Compute the rates of the paper's algorithms and the guarantees of all."""
    at = rates(problem)
    # On the very border, eps = K/N, rates are equal up to rounding; the first is taken.
    by_rate = min(at, key=lambda name: round(math.log(at[name]), 9))
    both = *plan(problem).rows, *plan(problem, constants="ours").rows
    shares = {
        row.algorithm + OURS * (row.entry.constants == "ours"): row.share
        for row in both
        if row.bound is not None and row.entry.private
    }
    return RegimeCell(problem, by_rate if at[by_rate] < problem.horizon("a rate") else None, shares)
