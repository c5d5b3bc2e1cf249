"""Centred EXP3, EXP4 and Tsallis-INF written a second time, from their formulas: plain NumPy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Floats = NDArray[np.float64]


def baseline(z: Floats) -> Floats:
    """Return -z log(z (1 - exp(-1/z))), by the formula as it stands."""
    z = np.maximum(z, 1e-12)
    value: Floats = -z * np.log(z * -np.expm1(-1.0 / z))
    return value


def exp3_regret(
    means: Floats, rounds: int, rate: float, share: float, rng: np.random.Generator
) -> float:
    """Play Bernoulli losses whose means may change; regret against the best arm of each round."""
    arms = means.shape[1]
    weights = np.full(arms, 1.0 / arms)
    regret = 0.0
    for t in range(rounds):
        arm = rng.choice(arms, p=weights)
        loss = float(rng.random() < means[t, arm])
        regret += means[t, arm] - means[t].min()
        b = baseline(weights / rate)
        estimate = b.copy()
        estimate[arm] += (loss - b[arm]) / weights[arm]
        weights = weights * np.exp(-rate * estimate)
        weights /= weights.sum()
        weights = (1.0 - share) * weights + share / arms
    return regret


def exp4_loss(advice: Floats, means: Floats, rate: float, rng: np.random.Generator) -> float:
    """Play (rounds, experts, arms) advice on Bernoulli losses; what that loses in expectation."""
    weights = np.full(advice.shape[1], 1.0 / advice.shape[1])
    total = 0.0
    for shares in advice:
        q = weights @ shares
        arm = rng.choice(q.size, p=q / q.sum())
        total += means[arm]
        b = baseline(q / rate)
        estimate = b.copy()
        estimate[arm] += (float(rng.random() < means[arm]) - b[arm]) / q[arm]
        weights = weights * np.exp(-rate * shares @ estimate)
        weights /= weights.sum()
    return total


def tsallis_regret(means: Floats, rounds: int, fixed: bool, rng: np.random.Generator) -> float:
    """Play Bernoulli losses with centred Tsallis-INF."""
    arms = means.size
    losses = np.zeros(arms)
    regret = 0.0
    for t in range(1, rounds + 1):
        rate = math.sqrt(32 * (1 - arms**-0.5) / rounds) if fixed else 4 / math.sqrt(t)
        x = _minimiser(losses, 2 / rate)
        arm = rng.choice(arms, p=x)
        regret += means[arm] - means.min()
        v = rate / (2 * np.sqrt(x))
        w = (v + 2 - np.sqrt(v**2 + 4)) / (2 * v)
        b = 0.5 - (0.5 - w) / np.maximum(1 - x, np.minimum(v, 0.5))
        losses += b
        losses[arm] += (float(rng.random() < means[arm]) - b[arm]) / x[arm]
    return regret


def _minimiser(losses: Floats, c: float) -> Floats:
    gaps = losses - losses.min()
    high = c * math.sqrt(losses.size) + 1e-9
    y = brentq(lambda y: float(np.sum((c / (gaps + y)) ** 2)) - 1.0, c * (1 - 1e-9), high)
    x = (c / (gaps + y)) ** 2
    normalised: Floats = x / x.sum()
    return normalised
