"""Problems on which the constants of phases were chosen: ``python -m benchmarks.tune_phased``.

They were written down before any was played, but for two with close arms and one with rates of 2%
that were added after the first results. ``benchmarks.ordinary`` and ``bandanna reproduce phases``
judge on others. To try a constant, edit it in ``bandanna.learners.phase_plan`` or ``phase_pilot``
and run this again.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from research.worlds import CommonEffects, Narrow, Waking

from bandanna.environments import Barrier, Environment, Segments
from benchmarks.ordinary import CHANGING, ORDINARY, WAKING, Case, compare

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


BY_MEANS: dict[str, tuple[int, float, Means]] = {
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
    "far apart": (80_000, 0.15, np.array([[0.65, 0.3, 0.1, 0.14, 0.5]])),
    "three far apart": (40_000, 0.3, np.array([[0.6, 0.25, 0.2]])),
    "rare losses": (20_000, 0.2, np.array([[0.4, 0.03, 0.05]])),
    "rates of 2%": (100_000, 0.8, np.array([[0.98, 0.97]])),
    "rates of 2%, more epsilon": (150_000, 1.2, np.array([[0.98, 0.968]])),
    "rates of 2%, 5 arms": (500_000, 0.4, np.array([[0.98, 0.98, 0.972, 0.98, 0.98]])),
    "gap 0.3, 2 arms": (4_000, 0.7, steady(2, 0.3)),
    "gap 0.06, 5 arms": (8_000, 1.8, steady(5, 0.06)),
    "gap 0.2, 30 arms": (30_000, 1.5, steady(30, 0.2)),
    "gap 0.1, 2 arms": (300_000, 0.05, steady(2, 0.1)),
}


MORE: list[tuple[str, str, Environment, float]] = [
    (ORDINARY, "weekdays", CommonEffects(8, 60_000), 0.2),
    (ORDINARY, "lab values", Narrow(6, 30_000), 0.4),
    (ORDINARY, "lab values", Narrow(3, 8_000), 1.5),
    (WAKING, "wakes at 40%", Waking(6, 50_000, wakes=0.4), 0.3),
    (WAKING, "wakes at 40%", Waking(3, 400_000, wakes=0.4), 0.1),
    (WAKING, "wakes at 40%", Waking(15, 300_000, wakes=0.4), 0.25),
    (WAKING, "barrier turn 0.33", Barrier(60_000, 19_800), 0.2),
    (WAKING, "barrier turn 0.33", Barrier(12_000, 3_960), 0.8),
]
KINDS = {
    "the best arm moves": CHANGING,
    "30 pieces": CHANGING,
    "an arm wakes": WAKING,
    "an arm wakes, short": WAKING,
}


def cases() -> list[Case]:
    """Return all problems."""
    found = []
    for name, (rounds, epsilon, means) in BY_MEANS.items():
        pieces = np.diff(np.linspace(0, rounds, len(means) + 1).round().astype(int))
        world = Segments(means, pieces, bernoulli=True)
        found.append(Case(name, KINDS.get(name, ORDINARY), world, epsilon))
    return found + [Case(name, kind, world, epsilon) for kind, name, world, epsilon in MORE]


def main() -> None:
    """Print the table and what holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    compare(cases(), parser.parse_args().runs)


if __name__ == "__main__":
    main()
