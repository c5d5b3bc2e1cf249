"""Thompson sampling with Beta laws (Thompson 1933; Agrawal, Goyal 2012), without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna._core.streams import Stream, normal, uniform
from bandanna.learners.base import CompiledLearner, aligned_zeros
from bandanna.learners.steps import Lesson, register


class ThompsonParams(NamedTuple):
    """Numbers for the compiled steps: none."""

    unused: float


class ThompsonState(NamedTuple):
    """The two parameters of each arm's Beta law of its mean loss."""

    ones: NDArray[np.float64]
    zeros: NDArray[np.float64]


@dataclass(frozen=True)
class Thompson(CompiledLearner):
    """Draw each arm's mean loss from what is believed of it, and play the smallest.

    Beliefs are Beta laws that start uniform. A loss between 0 and 1 counts in part as a 1 and in
    part as a 0. Optimal for stationary Bernoulli losses, and defenceless where they change.

    Parameters
    ----------
    arms
        Number of arms K, at least 2.

    References
    ----------
    S. Agrawal, N. Goyal. Analysis of Thompson sampling for the multi-armed bandit problem. COLT
    2012.
    """

    arms: int
    name: ClassVar[str] = "thompson"
    tells_chance: ClassVar[bool] = False
    ranks: ClassVar[bool] = True
    per_arm: ClassVar[tuple[str, ...]] = ("ones", "zeros")

    def params(self) -> ThompsonParams:
        """Return the numbers for the compiled steps."""
        return ThompsonParams(0.0)

    def start(self) -> ThompsonState:
        """Return the state before the first round: uniform beliefs."""
        state = ThompsonState(*aligned_zeros(self.arms, self.arms))
        state.ones[:] = 1.0
        state.zeros[:] = 1.0
        return state


@step
def gamma(stream: Stream, shape: float) -> float:
    """Draw from the Gamma law of a shape of at least 1 (Marsaglia, Tsang 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        root = 1.0 + c * x
        if root > 0.0:
            v = root * root * root
            u = 1.0 - uniform(stream)
            if math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
                return d * v


@step
def _draw(params: ThompsonParams, state: ThompsonState, stream: Stream) -> tuple[int, float]:
    best = 0
    smallest = math.inf
    for i in range(state.ones.size):
        one = gamma(stream, state.ones[i])
        loss = one / (one + gamma(stream, state.zeros[i]))
        if loss < smallest:
            best, smallest = i, loss
    return best, 1.0


@step
def _update(params: ThompsonParams, state: ThompsonState, lesson: Lesson) -> None:
    arm, _, loss, _ = lesson
    loss = min(max(loss, 0.0), 1.0)
    state.ones[arm] += loss
    state.zeros[arm] += 1.0 - loss


register(ThompsonParams, _draw, _update)
