"""The distribution that HTINF and Tsallis-INF play: follow the regularised leader, solved.

Both minimise ``<L, x> / c - alpha * sum(x_i ** (1 / alpha))`` over the simplex. The minimiser is
``x_i = (c / (L_i - min(L) + y)) ** p`` with ``p = alpha / (alpha - 1)`` and the one ``y >= c`` that
makes it sum to 1.

Why Newton's method below always gets there. Let ``S(y)`` be the sum of the ``x_i`` and
``f(y) = S(y) ** (-1/p)``: the generalised mean with a negative exponent of the affine functions
``(L_i - min(L) + y) / c``, so it is increasing and concave. A tangent of a concave function lies
above it and reaches 1 no later, so every Newton step on ``f(y) = 1`` lands at or left of the
root, from any start, and from there the steps rise monotonically. With equal losses ``f`` is
linear and one step is enough; warm-started, two evaluations are typical. The root is between
``c`` and ``c * K ** (1/p)``, where the start is put: there ``S`` neither overflows nor vanishes.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna.learners.base import CompiledLearner, State

Floats = NDArray[np.float64]

TOLERANCE = 1e-9
"""How far the sum may be from 1 before it is normalised away."""

MAX_STEPS = 100


class FtrlState(NamedTuple):
    """Estimated losses, the distribution last played, its normaliser, updates and draws so far."""

    losses: NDArray[np.float64]
    chances: NDArray[np.float64]
    root: NDArray[np.float64]
    updates: NDArray[np.int64]


class FtrlLearner(CompiledLearner):
    """A learner that keeps estimated losses and the distribution that follows from them."""

    per_arm: ClassVar[tuple[str, ...]] = ("losses", "chances")

    def start(self) -> FtrlState:
        """Return the state before the first round: the uniform distribution."""
        return FtrlState(
            losses=np.zeros(self.arms),
            chances=np.full(self.arms, 1.0 / self.arms),
            root=np.zeros(1),
            updates=np.zeros(2, dtype=np.int64),
        )

    def welcome(self, state: State, first: int) -> None:
        """Let new arms start level with the best."""
        level_with_best(state.losses, first)


def level_with_best(losses: Floats, first: int) -> None:
    """Let arms from ``first`` on, which are new, start with the smallest of the other losses."""
    losses[first:] = losses[:first].min()


@step
def centre(losses: Floats) -> None:
    """Shift losses so that the smallest is 0. FTRL is blind to it, floating point is grateful."""
    smallest = losses[0]
    for i in range(1, losses.size):
        smallest = min(smallest, losses[i])
    for i in range(losses.size):
        losses[i] -= smallest


@step
def solve(losses: Floats, chances: Floats, c: float, y: float, p: float) -> float:
    """Fill ``chances`` from centred losses, starting at ``y``; returns the root."""
    y = min(max(y, c), c * _root(float(losses.size), p))
    total = 1.0
    for _ in range(MAX_STEPS):
        total = 0.0
        slope = 0.0
        for i in range(losses.size):
            ratio = c / (losses[i] + y)
            value = ratio * ratio if p == 2.0 else ratio**p
            chances[i] = value
            total += value
            slope += value * ratio
        if abs(total - 1.0) <= TOLERANCE:
            break
        y = max(y + c * total * (_root(total, p) - 1.0) / slope, c)
    scale = 1.0 / total
    for i in range(losses.size):
        chances[i] *= scale
    return y


@step
def _root(x: float, p: float) -> float:
    return math.sqrt(x) if p == 2.0 else x ** (1.0 / p)
