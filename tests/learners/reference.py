"""HTINF written a second time, from its paper, with nothing of ours: slow, plain NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def htinf_regret(
    means: NDArray[np.float64],
    rounds: int,
    runs: int,
    noise: float,
    sigma: float,
    alpha: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the regret of independent runs on constant losses plus Laplace noise."""
    arms = means.size
    estimates = np.zeros((runs, arms))
    regret = np.zeros(runs)
    theta = 1 - 2 ** (-(alpha - 1) / (2 * alpha - 1))
    other = np.exp(-0.5) if alpha == 2 else (2 - 2 / alpha) ** (1 / (2 - alpha))
    theta = min(theta, other)
    everyone = np.arange(runs)
    for t in range(1, rounds + 1):
        rate = 1 / (sigma * t ** (1 / alpha))
        x = _minimiser(rate * estimates, alpha)
        chosen = (x.cumsum(axis=1) < rng.random((runs, 1))).sum(axis=1).clip(0, arms - 1)
        probability = x[everyone, chosen]
        regret += means[chosen] - means.min()
        noisy = means[chosen] + (rng.laplace(0, noise, runs) if noise else 0)
        kept = np.abs(noisy) <= theta / rate * probability ** (1 / alpha)
        estimates[everyone, chosen] += np.where(kept, noisy / probability, 0)
    return regret


def _minimiser(scores: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Minimise <scores, x> - alpha sum x**(1/alpha) over the simplex by bisection."""
    power = alpha / (alpha - 1)
    gaps = scores - scores.min(axis=1, keepdims=True)
    low = np.ones((scores.shape[0], 1))
    high = np.full_like(low, scores.shape[1] ** (1 / power))
    for _ in range(50):
        middle = (low + high) / 2
        too_much = ((gaps + middle) ** -power).sum(axis=1, keepdims=True) > 1
        low, high = np.where(too_much, middle, low), np.where(too_much, high, middle)
    x = (gaps + high) ** -power
    normalised: NDArray[np.float64] = x / x.sum(axis=1, keepdims=True)
    return normalised
