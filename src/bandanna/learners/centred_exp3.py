"""EXP3 with centred estimates, and with a fixed share for tracking: the compiled part.

All arms move each time, so a step costs as much as there are arms. Estimated losses are kept, not
weights: an arm whose weight has vanished still knows how far behind it is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import kernel, step
from bandanna._core.streams import Stream, uniform
from bandanna.learners.base import aligned_zeros
from bandanna.learners.centring import entropy_baseline
from bandanna.learners.sampling import capped_inverse, pick
from bandanna.learners.steps import register


class CentredExp3Params(NamedTuple):
    """Numbers for the compiled steps."""

    learning_rate: float
    """0 where it falls with the number of losses."""
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
def centred_draw(
    params: CentredExp3Params, state: CentredExp3State, stream: Stream
) -> tuple[int, float]:
    """Draw an arm, and add ``b_i - 1/2`` to every arm's loss.

    That part of the estimate does not depend on the loss. Added here it has the baselines of the
    draw, however late the loss comes.
    """
    arm = pick(state.chances, 0, state.chances.size, uniform(stream))
    add_baselines(params, state, 1.0)
    return arm, capped_inverse(state.chances[arm])


@step
def add_baselines(params: CentredExp3Params, state: CentredExp3State, sign: float) -> None:
    """Add what an estimate adds to all arms, or take it away again."""
    rate = current_rate(params, state)
    for i in range(state.losses.size):
        baseline, cost = entropy_baseline(state.chances[i] / rate)
        state.losses[i] += sign * (baseline - 0.5)
        state.cost[1] += sign * cost


@step
def current_rate(params: CentredExp3Params, state: CentredExp3State) -> float:
    """Return the learning rate; where none is given, ``2 sqrt(ln(K) / (K t))`` of step t."""
    if params.learning_rate > 0.0:
        return params.learning_rate
    arms = state.losses.size
    return 2.0 * math.sqrt(math.log(arms) / (arms * (state.cost[0] + 1.0)))


@step
def centred_update(
    params: CentredExp3Params,
    state: CentredExp3State,
    arm: int,
    importance: float,
    loss: float,
    rounds: int,
) -> None:
    """Add ``(loss - b) / chance`` to the arm that was played, and follow the losses."""
    losses, chances = state.losses, state.chances
    baseline, _ = entropy_baseline(1.0 / (importance * current_rate(params, state)))
    losses[arm] += (loss - baseline) * importance
    state.cost[0] += 1.0
    rate = current_rate(params, state)
    smallest = math.inf
    for i in range(losses.size):
        smallest = min(smallest, losses[i])
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


@kernel
def take_back_once(params: CentredExp3Params, state: CentredExp3State) -> None:
    """Take back the newest draw, from Python."""
    add_baselines(params, state, -1.0)


register(CentredExp3Params, centred_draw, centred_update)
