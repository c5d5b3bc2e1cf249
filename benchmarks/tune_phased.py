"""Problems on which the constants of phases were chosen: ``python -m benchmarks.tune_phased``.

They were written down before any was played, but for two with close arms that were added after the
first results. ``bandanna reproduce phases`` judges on others. To try a constant, edit it in
``bandanna.learners.phase_plan`` and run this again.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

import bandanna as bd
from bandanna.environments import Segments

RUNS = 200
Means = NDArray[np.float64]


def steady(arms: int, gap: float) -> Means:
    """One arm is better."""
    means = np.full((1, arms), 0.5)
    means[:, arms // 2] -= gap
    return means


def together(arms: int, gap: float, levels: Means) -> Means:
    """One arm is better, and all move together."""
    means = np.repeat(levels[:, None], arms, axis=1)
    means[:, arms // 2] -= gap
    return means


def moving(arms: int, gap: float, moves: int) -> Means:
    """Another arm becomes the best, several times."""
    means = np.full((moves, arms), 0.5)
    for piece in range(moves):
        means[piece, (3 * piece + 1) % arms] -= gap
    return means


def waking(arms: int, gap: float, by: float) -> Means:
    """An arm that was as bad as the others becomes the best."""
    means = np.full((10, arms), 0.5)
    means[:, 0] -= gap
    means[4:, -2] = 0.5 - gap - by
    return means


PROBLEMS: dict[str, tuple[int, float, Means]] = {
    "gap 0.02, 8 arms": (250_000, 0.1, steady(8, 0.02)),
    "gap 0.03, 12 arms": (100_000, 0.15, steady(12, 0.03)),
    "gap 0.03, 8 arms": (100_000, 0.2, steady(8, 0.03)),
    "gap 0.015, 10 arms": (300_000, 0.1, steady(10, 0.015)),
    "gap 0.03, 6 arms": (50_000, 0.3, steady(6, 0.03)),
    "gap 0.025, 12 arms": (150_000, 0.1, steady(12, 0.025)),
    "gap 0.12, 8 arms": (100_000, 0.2, steady(8, 0.12)),
    "gap 0.15, 10 arms": (250_000, 0.08, steady(10, 0.15)),
    "gap 0.08, 5 arms": (30_000, 0.5, steady(5, 0.08)),
    "gap 0.05, 2 arms": (3_000, 1.0, steady(2, 0.05)),
    "gap 0.2, 3 arms": (5_000, 0.8, steady(3, 0.2)),
    "gap 0.01, 4 arms": (200_000, 0.2, steady(4, 0.01)),
    "a line of arms": (120_000, 0.15, np.linspace(0.3, 0.5, 8)[None]),
    "common trend": (150_000, 0.1, together(8, 0.08, np.linspace(0.35, 0.6, 400))),
    "common jumps": (100_000, 0.2, together(8, 0.08, np.tile([0.3, 0.6], 30))),
    "the best arm moves": (150_000, 0.15, moving(8, 0.2, 4)),
    "an arm wakes": (150_000, 0.15, waking(8, 0.05, 0.25)),
    "an arm wakes, short": (24_000, 0.5, waking(6, 0.05, 0.25)),
    "30 pieces": (150_000, 0.12, np.random.default_rng(77).random((30, 8))),
}


def main(runs: int = RUNS) -> None:
    """Print regret on every problem."""
    print("| problem | T | epsilon | mean regret | s.e. | 90% | alarms |")
    print("|---|---|---|---|---|---|---|")
    for name, (rounds, epsilon, means) in PROBLEMS.items():
        pieces = np.diff(np.linspace(0, rounds, len(means) + 1).round().astype(int))
        world = Segments(means, pieces, bernoulli=True)
        policy = bd.PrivateBandit(world.arms, epsilon, rounds, "phased")
        found = bd.simulate({"it": policy}, world, replicates=runs, checkpoints=1)
        regret, guard = found.regret("it"), found.guard("it")
        error = regret.std(ddof=1) / math.sqrt(runs)
        alarms = "-" if guard is None else f"{guard.alarms:.1%}"
        cells = (name, f"{rounds:,}", f"{epsilon:g}", f"{regret.mean():,.0f}", f"{error:,.0f}")
        print(f"| {' | '.join(cells)} | {np.quantile(regret, 0.9):,.0f} | {alarms} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
