"""KL-UCB (Garivier, Cappe 2011): for stationary losses, the strongest without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna._core.streams import Stream
from bandanna.learners.base import CompiledLearner, aligned_zeros
from bandanna.learners.sampling import total_of
from bandanna.learners.steps import Lesson, register

Floats = NDArray[np.float64]


class KlUcbParams(NamedTuple):
    """Numbers for the compiled steps: none."""

    unused: float


class KlUcbState(NamedTuple):
    """Sums of losses and how many, for each arm; draws whose loss has not come back."""

    losses: Floats
    plays: Floats
    waiting: Floats


@dataclass(frozen=True)
class KlUcb(CompiledLearner):
    """Play the arm whose mean loss may still be smallest.

    How small it may be is judged by the divergence of Bernoulli laws, which is right for 0s and 1s
    and safe for all losses in [0, 1]. Optimal to the constant for stationary Bernoulli losses, and
    defenceless where they change.

    Parameters
    ----------
    arms
        Number of arms K, at least 2.

    References
    ----------
    A. Garivier, O. Cappe. The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT
    2011.
    """

    arms: int
    name: ClassVar[str] = "kl-ucb"
    ranks: ClassVar[bool] = True
    per_arm: ClassVar[tuple[str, ...]] = ("losses", "plays", "waiting")

    def params(self) -> KlUcbParams:
        """Return the numbers for the compiled steps."""
        return KlUcbParams(0.0)

    def start(self) -> KlUcbState:
        """Return the state before the first round."""
        return KlUcbState(*aligned_zeros(self.arms, self.arms, self.arms))

    def take_back(self, state: KlUcbState, arm: int, importance: float) -> None:
        """Wait no more for the loss of a draw."""
        state.waiting[arm] -= 1.0


@step
def untried(plays: Floats, waiting: Floats) -> int:
    """Return an arm nothing is known of, or -1.

    Those whose first loss is on its way come last, and only while no arm is known at all.
    """
    best = -1
    known = False
    for i in range(plays.size):
        if plays[i] > 0.0:
            known = True
        elif best < 0 or waiting[i] < waiting[best]:
            best = i
    if best >= 0 and waiting[best] > 0.0 and known:
        return -1
    return best


@step
def _draw(params: KlUcbParams, state: KlUcbState, stream: Stream) -> tuple[int, float]:
    arm = untried(state.plays, state.waiting)
    if arm < 0:
        logarithm = math.log(max(total_of(state.plays), 2.0))
        largest = -1.0
        for i in range(state.plays.size):
            plays = state.plays[i]
            if plays > 0.0:
                reward = min(max(1.0 - state.losses[i] / plays, 0.0), 1.0)
                index = kl_upper(reward, logarithm / plays, 1.0)
                if index > largest:
                    arm, largest = i, index
    state.waiting[arm] += 1.0
    return arm, 1.0


@step
def _update(params: KlUcbParams, state: KlUcbState, lesson: Lesson) -> None:
    arm, _, loss, _ = lesson
    state.losses[arm] += loss
    state.plays[arm] += 1.0
    state.waiting[arm] -= 1.0


register(KlUcbParams, _draw, _update)


# --- how large an arm's mean reward may still be ------------------------------------------------
#
# `kl` is the divergence of two Bernoulli laws. Its private counterpart (Azize, Wu, Honda, Orabona,
# Ito, Basu 2025) is `d(x, y) = min over z of epsilon |z - x| + kl(z, y)`: how well an
# epsilon-private policy can tell mean x from mean y. For `x < y` the minimum is at
# `z = y e / (1 - y + y e)`, `e = exp(-epsilon)`, where that is above x; there
# `d(x, y) = -epsilon x - ln(1 - y (1 - e))`, otherwise it is `kl(x, y)`.


ALMOST_ONE = 1.0 - 2.0**-52
NEWTON_STEPS = 60


@step
def kl(x: float, y: float) -> float:
    """Return the divergence of a Bernoulli law of mean x from one of mean y, both in [0, 1]."""
    total = 0.0
    if x > 0.0:
        total += x * math.log(x / y) if y > 0.0 else math.inf
    if x < 1.0:
        total += (1.0 - x) * math.log((1.0 - x) / (1.0 - y)) if y < 1.0 else math.inf
    return total


@step
def kl_upper(x: float, level: float, start: float) -> float:
    """Return the largest y with ``kl(x, y) <= level``, by Newton's method from above.

    ``kl(x, .)`` is convex and increasing beyond x, so from a start at or above the root, steps
    come down to it without passing it.
    """
    if x >= 1.0:
        return 1.0
    y = min(start, x + math.sqrt(0.5 * level), ALMOST_ONE)
    for _ in range(NEWTON_STEPS):
        excess = kl(x, y) - level
        if excess <= 1e-12 * level or y <= x:
            break
        y -= excess * y * (1.0 - y) / (y - x)
    return max(y, x)


@step
def private_upper(x: float, level: float, epsilon: float) -> float:
    """Return the largest y in [0, 1] with ``d(x, y) <= level``."""
    e = math.exp(-epsilon)
    meet = x / (x + (1.0 - x) * e)  # up to here d is kl
    if x > 0.0 and kl(x, meet) >= level:
        return kl_upper(x, level, meet)
    return min(math.expm1(-level - epsilon * x) / math.expm1(-epsilon), 1.0)
