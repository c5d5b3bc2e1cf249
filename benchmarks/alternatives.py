"""What people would use otherwise: river, MABWiser, and NumPy over many runs at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from mabwiser.mab import MAB, LearningPolicy
from river import bandit

Floats = np.ndarray


def river_exp3(losses: Floats) -> float:
    """Seconds a round of river's Exp3, over its first rounds: it overflows soon after 14 000."""
    policy = bandit.Exp3(gamma=0.1, seed=1)
    arms = list(range(losses.shape[1]))
    start = time.perf_counter()
    for row in losses:
        arm = policy.pull(arms)
        policy.update(arm, 1.0 - row[arm])
    return (time.perf_counter() - start) / len(losses)


# Those that learn; its Random does not.
MABWISER_POLICIES: dict[str, Callable[[], object]] = {
    "EpsilonGreedy": lambda: LearningPolicy.EpsilonGreedy(0.1),
    "Softmax": lambda: LearningPolicy.Softmax(1.0),
    "UCB1": lambda: LearningPolicy.UCB1(1.0),
    "ThompsonSampling": lambda: LearningPolicy.ThompsonSampling(lambda arm, loss: loss > 0.5),
}


def fastest_mabwiser(losses: Floats, repeats: int) -> tuple[str, float]:
    """Name and seconds a round of MABWiser's fastest policy."""
    times = {
        name: min(_mabwiser(make, losses) for _ in range(repeats))
        for name, make in MABWISER_POLICIES.items()
    }
    best = min(times, key=lambda name: times[name])
    return best, times[best]


def _mabwiser(make: Callable[[], object], losses: Floats) -> float:
    mab = MAB(list(range(losses.shape[1])), make(), seed=1)
    mab.fit([0], [0.5])
    start = time.perf_counter()
    for row in losses:
        arm = mab.predict()
        mab.partial_fit([arm], [1.0 - row[arm]])
    return (time.perf_counter() - start) / len(losses)


def numpy_exp3(losses: Floats, runs: int, rate: float, mixing: float) -> float:
    """Seconds a round and run of EXP3 vectorised over runs, as one would write it in NumPy."""
    arms = losses.shape[1]
    rng = np.random.default_rng(1)
    estimates = np.zeros((runs, arms))
    everyone = np.arange(runs)
    start = time.perf_counter()
    for row in losses:
        weights = np.exp(-rate * (estimates - estimates.min(axis=1, keepdims=True)))
        chances = (1 - mixing) * weights / weights.sum(axis=1, keepdims=True) + mixing / arms
        chosen = (chances.cumsum(axis=1) < rng.random((runs, 1))).sum(axis=1)
        np.minimum(chosen, arms - 1, out=chosen)
        estimates[everyone, chosen] += row[chosen] / chances[everyone, chosen]
    return (time.perf_counter() - start) / (len(losses) * runs)


def exp3_parameters(arms: int, rounds: int) -> tuple[float, float]:
    """The same learning rate and mixing for everyone."""
    return math.sqrt(2 * math.log(arms) / (arms * rounds)), 0.01
