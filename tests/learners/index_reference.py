"""KL-UCB, Thompson sampling and DP-KLUCB a second time, from their papers: plain Python."""

from __future__ import annotations

import math

import numpy as np


def kl(x: float, y: float) -> float:
    y = min(max(y, 1e-15), 1 - 1e-15)
    total = 0.0
    if x > 0:
        total += x * math.log(x / y)
    if x < 1:
        total += (1 - x) * math.log((1 - x) / (1 - y))
    return total


def private(x: float, y: float, epsilon: float) -> float:
    """Minimise over z by ternary search: epsilon |z - x| + kl(z, y), convex in z."""
    low, high = x, y
    for _ in range(80):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        if epsilon * (one - x) + kl(one, y) < epsilon * (two - x) + kl(two, y):
            high = two
        else:
            low = one
    return epsilon * (low - x) + kl(low, y)


def private_on_a_grid(x: float, y: float, epsilon: float) -> float:
    """Do the same within a millionth, faster."""
    z = np.linspace(x, y, 300)[1:-1]
    y = min(max(y, 1e-15), 1 - 1e-15)
    far = z * np.log(z / y) + (1 - z) * np.log((1 - z) / (1 - y)) + epsilon * (z - x)
    return float(min(far.min(), kl(x, y)))


def upper(x: float, level: float, epsilon: float | None, steps: int = 45) -> float:
    """Return the largest y whose divergence from x is at most the level, by bisection."""
    low, high = x, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        far = kl(x, middle) if epsilon is None else private(x, middle, epsilon)
        low, high = (middle, high) if far <= level else (low, middle)
    return low


def quick_upper(x: float, level: float, epsilon: float) -> float:
    low, high = x, 1.0
    for _ in range(18):
        middle = (low + high) / 2
        fits = middle <= x or private_on_a_grid(x, middle, epsilon) <= level
        low, high = (middle, high) if fits else (low, middle)
    return low


def kl_ucb_regret(means: np.ndarray, rounds: int, rng: np.random.Generator) -> float:
    arms = means.size
    rewards, plays = np.zeros(arms), np.zeros(arms)
    regret = 0.0
    for t in range(rounds):
        if t < arms:
            arm = t
        else:
            level = math.log(max(t, 2))
            arm = int(np.argmax([upper(rewards[i] / plays[i], level / plays[i], None, 25)
                                 for i in range(arms)]))  # fmt: skip
        regret += means[arm] - means.min()
        rewards[arm] += float(rng.random() >= means[arm])
        plays[arm] += 1
    return regret


def thompson_regret(means: np.ndarray, rounds: int, rng: np.random.Generator) -> float:
    ones, zeros = np.ones(means.size), np.ones(means.size)
    regret = 0.0
    for _ in range(rounds):
        arm = int(np.argmin(rng.beta(ones, zeros)))
        regret += means[arm] - means.min()
        loss = float(rng.random() < means[arm])
        ones[arm] += loss
        zeros[arm] += 1 - loss
    return regret


def dp_klucb_regret(
    means: np.ndarray, rounds: int, epsilon: float, rng: np.random.Generator
) -> float:
    """Play the textbook algorithm: one round of each arm, then half as many again each time."""
    arms = means.size
    rewards, plays = np.zeros(arms), np.zeros(arms)
    regret, t = 0.0, 0
    while t < rounds:
        if np.any(plays == 0):
            arm, size = int(np.argmin(plays)), 1
        else:
            cut, level = np.clip(rewards / plays, 0, 1), math.log(max(t, 2)) / plays
            found = [quick_upper(float(cut[i]), level[i], epsilon) for i in range(arms)]
            best = max(found)
            ties = [i for i in range(arms) if found[i] >= best - 1e-5]
            arm = min(ties, key=lambda i: plays[i])
            size = math.ceil(plays[arm] / 2)
        played = min(size, rounds - t)
        regret += played * (means[arm] - means.min())
        t += played
        if played == size:
            rewards[arm] += rng.binomial(size, 1 - means[arm]) + rng.laplace(0, 1 / epsilon)
            plays[arm] += size
    return regret
