"""EXP3 with centred estimates, and with a fixed share for tracking: the compiled part.

All arms move each time, so a step costs as much as there are arms. Estimated losses are kept, not
weights: an arm whose weight has vanished still knows how far behind it is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna._core.streams import Stream, uniform
from bandanna.learners.base import aligned_zeros
from bandanna.learners.centring import entropy_baseline
from bandanna.learners.sampling import capped_inverse, pick
from bandanna.learners.steps import register


class CentredExp3Params(NamedTuple):
    """Numbers for the compiled steps."""

    learning_rate: float
    share: float


class CentredExp3State(NamedTuple):
    """Estimated losses (up to a common constant), and the distribution that follows from them."""

    losses: NDArray[np.float64]
    chances: NDArray[np.float64]
    cost: NDArray[np.float64]
    """Updates so far, and the sum of their costs over all arms: what was really paid of the
    bound's ``updates * arms / 8``."""


def start_centred(arms: int) -> CentredExp3State:
    """Return the state before the first round: the uniform distribution."""
    state = CentredExp3State(*aligned_zeros(arms, arms, 2))
    state.chances[:] = 1.0 / arms
    return state


@step
def _draw(params: CentredExp3Params, state: CentredExp3State, stream: Stream) -> tuple[int, float]:
    arm = pick(state.chances, 0, state.chances.size, uniform(stream))
    return arm, capped_inverse(state.chances[arm])


@step
def centred_update(
    params: CentredExp3Params,
    state: CentredExp3State,
    arm: int,
    importance: float,
    loss: float,
    rounds: int,
) -> None:
    """Add ``b_i - 1/2`` to every arm, and ``(loss - b) / chance`` to the one that was played."""
    losses, chances, rate = state.losses, state.chances, params.learning_rate
    cost = 0.0
    smallest = math.inf
    for i in range(losses.size):
        z = chances[i] / rate
        baseline, arm_cost = entropy_baseline(z)
        cost += arm_cost
        losses[i] += baseline - 0.5
        if i == arm:
            losses[i] += (loss - baseline) * importance
        smallest = min(smallest, losses[i])
    state.cost[0] += 1.0
    state.cost[1] += cost
    total = 0.0
    for i in range(losses.size):
        losses[i] -= smallest
        chances[i] = math.exp(-rate * losses[i])
        total += chances[i]
    scale = 1.0 / total
    for i in range(losses.size):
        chances[i] *= scale
    if params.share > 0.0:
        _share(params, state)


@step
def _share(params: CentredExp3Params, state: CentredExp3State) -> None:
    """Give every arm a part of the whole, so that none is ever far behind."""
    floor = params.share / state.chances.size
    for i in range(state.chances.size):
        state.chances[i] = (1.0 - params.share) * state.chances[i] + floor
        state.losses[i] = -math.log(state.chances[i]) / params.learning_rate


register(CentredExp3Params, _draw, centred_update)
