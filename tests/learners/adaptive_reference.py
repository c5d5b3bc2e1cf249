"""Adaptive written a second time, from docs/theory/adaptive.md: plain NumPy and a root finder."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Floats = NDArray[np.float64]


def excess(u: float) -> float:
    """Return u - log(1 + u)."""
    return u - math.log1p(u)


def higher_orders(u: float) -> float:
    """Return 1 + 2u/3 + u^2/2 + u^3/2 + u^4/2 ..., summed."""
    return float(1 + 2 * u / 3 + sum(u**k / 2 for k in range(2, 400)))


class Doubts:
    """What is forgotten because an arm became worse."""

    def __init__(self, arms: int, memory: float | None) -> None:
        self.short, self.long = np.zeros(arms), np.zeros(arms)
        self.variance, self.done, self.memory = 0.1, 0.0, memory

    def after(self, arm: int, heard: float, seen: float, t: int) -> float:
        """Look at the loss of step t."""
        count = min(t, self.memory or t)
        slow = min(1 / (3 * math.sqrt(count)), 0.02)
        if seen > 1:
            squared = float(heard - self.long[arm]) ** 2
            self.variance += (squared - self.variance) / (count + 5)
        self.short[arm] += max(1 / seen, 10 * slow) * (heard - self.short[arm])
        self.long[arm] += max(1 / seen, slow) * (heard - self.long[arm])
        sd = math.sqrt(self.variance * 10 * slow / (2 - 10 * slow))
        deviations = max(self.short[arm] - self.long[arm], 0.0) / sd
        more = 2 * slow * float(np.clip(deviations**2 / 9 - 1, 0, 1))
        more = max(0.0, min(more, 0.3 * math.log(t) - self.done))
        self.done += more
        return more


def regret(
    means: Floats,
    noise: float,
    memory: float | None,
    rng: np.random.Generator,
    known: bool = True,
    fresh: float = 0.0,
) -> float:
    """Play losses that are means plus Laplace noise; regret against each round's best arm."""
    rounds, arms = means.shape
    first, clamp, level = 0.5, 0.5, 0.1
    delta = 0.0 if memory is None else 1.0 / memory
    L, m, seen = np.zeros(arms), np.full(arms, 0.45), np.zeros(arms)
    rate = np.full(arms, first)
    doubts = Doubts(arms, memory)
    total = 0.0
    for t in range(1, rounds + 1):
        v = L + m
        high = v.min() - 1e-12

        def above(x: float, v: Floats = v, rate: Floats = rate) -> float:
            return float(np.sum(rate / (v - x))) - 1.0

        x = brentq(above, v.min() - rate.sum() - 1.0, high, xtol=1e-13)
        p = rate / (v - x)
        p /= p.sum()
        arm = rng.choice(arms, p=p)
        total += means[t - 1, arm] - means[t - 1].min()
        heard = np.clip(means[t - 1, arm] + rng.laplace(0, noise), -clamp, 1 + clamp)
        # The part of a push that the simplex does not absorb.
        weights = p**2 / rate
        q = 1.0 - weights[arm] / weights.sum()
        surprise = heard - m[arm]
        a = max(surprise, -0.9 * rate[arm] / q)
        if a <= 0.0:
            u = -a * q / rate[arm]
            cost = a * a * q / (2 * rate[arm]) * higher_orders(u)
        else:
            cost = rate[arm] * excess(a / rate[arm])
            shift = a * p[arm] / rate[arm] / weights.sum()
            u = shift * np.max(p / rate)
            if u < 0.9:
                cost = min(cost, a * a * q / (2 * rate[arm]) * higher_orders(u))
        estimate = m.copy()
        estimate[arm] += a / p[arm]
        seen[arm] += 1
        more = doubts.after(arm, heard, float(seen[arm]), t)
        forget = min(delta + more, 1.0)
        L = (1 - forget) * (L + estimate)
        horizon = rounds if known else t
        g = max(math.log(min(horizon, 1 / delta) if delta else horizon), 1.0)
        rate = first + (rate - first) * (1 - forget / 2)
        rate[arm] += cost / g
        m = m + level * surprise
        m[arm] += max(1 / (seen[arm] + 1), fresh) * (heard - m[arm])
        m = np.clip(m, 0.0, np.minimum(0.9 * rate, 1.0))
    return total
