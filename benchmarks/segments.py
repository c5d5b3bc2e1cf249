"""Segments apart, one policy for all, or the segment as a feature: which earns more.

Eight segments come equally often. The worlds were written down before anything was measured: all
segments alike, one apart from the others, and two halves with different best arms. Run it with:
python -m benchmarks.segments [rounds in a segment] [runs]
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import bandanna as bd
from bandanna.contextual import ContextTable, simulate_context
from bandanna.environments import Bernoulli

Floats = NDArray[np.float64]

SEGMENTS, EPSILON = 8, 1.0
USUAL = (0.5, 0.6, 0.5, 0.4)
"""Mean rewards of four arms."""
OTHER = (0.6, 0.4, 0.5, 0.5)
WORLDS = {"alike": 0, "one apart": 1, "two halves": 4}
"""How many segments are unlike the others."""


def rewards_of(apart: int) -> Floats:
    """Return the mean reward of every segment and arm."""
    return np.array([OTHER if segment < apart else USUAL for segment in range(SEGMENTS)])


def played(means: Floats, rounds: int, runs: int) -> float:
    """Return the mean reward of a round of the default policy."""
    policy = bd.PrivateBandit(means.size, EPSILON, rounds)
    world = Bernoulli(tuple(1.0 - means), rounds=rounds)
    found = bd.simulate(policy, world, replicates=runs, progress=False)
    return float(means.max() - found.regret("policy").mean() / rounds)


def by_feature(rewards: Floats, rounds: int, runs: int) -> float:
    """Return the mean reward of a round of the contextual policy."""
    names = [f"s{segment}" for segment in range(SEGMENTS)]
    table = ContextTable.from_rewards({"segment": names}, {"segment": names}, rewards)
    each = [
        simulate_context(table, EPSILON, 1e-6, rounds, seed=run, bernoulli=True).reward
        for run in range(runs)
    ]
    return float(np.mean(each))


def main(rounds: int = 2_000, runs: int = 50) -> None:
    """Print the mean reward of a round in each world."""
    print(f"{SEGMENTS} segments of {rounds:,} rounds, epsilon {EPSILON:g}, {runs} runs")
    print(f"{'world':12s} {'best':>6s} {'one policy':>11s} {'Segments':>9s} {'feature':>8s}")
    for name, apart in WORLDS.items():
        rewards = rewards_of(apart)
        one = played(rewards.mean(axis=0), SEGMENTS * rounds, runs)
        alone = np.mean([played(means, rounds, runs) for means in rewards])
        feature = by_feature(rewards, SEGMENTS * rounds, runs)
        best = rewards.max(axis=1).mean()
        print(f"{name:12s} {best:6.3f} {one:11.3f} {alone:9.3f} {feature:8.3f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
