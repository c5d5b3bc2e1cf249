"""EXP3's weights and their sums, kept up to date one change at a time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import python_source, step
from bandanna.learners.base import aligned_zeros

ONE_LEVEL = 64
"""Up to this many arms one scan finds the arm; beyond it weights are also summed in blocks of
about the square root of their number, so that a round costs two short scans."""

SMALLEST, LARGEST = 1e-9, 1e9
"""Weights are rebuilt from the losses when their sum leaves this interval: no overflow, ever."""

REFRESH = 256
"""Sums follow single changes of weights, and are summed anew after so many of them or when they
have halved: rounding errors stay below 2**-44 of a sum."""


class Exp3Params(NamedTuple):
    """Numbers for the compiled steps."""

    learning_rate: float
    mixing: float
    block_bits: int


class Exp3State(NamedTuple):
    """Estimated losses (up to a common constant), their weights, and sums of weights."""

    losses: NDArray[np.float64]
    weights: NDArray[np.float64]
    total: NDArray[np.float64]
    """Sum of the weights, what it may not fall below, and updates since it was summed anew."""
    blocks: NDArray[np.float64]
    """Sums of blocks of weights; empty when there are few arms."""
    floors: NDArray[np.float64]
    """What each block's sum may not fall below before it is summed anew."""


def start_exp3(arms: int) -> Exp3State:
    """Return the state before the first round: all weights equal."""
    blocks = 0 if arms <= ONE_LEVEL else -(-arms // (1 << block_bits(arms)))
    state = Exp3State(*aligned_zeros(arms, arms, 3, blocks, blocks))
    state.weights[:] = 1.0
    python_source(refresh)(Exp3Params(1.0, 0.0, block_bits(arms)), state)
    return state


def mixed_chances(state: Exp3State, mixing: float) -> NDArray[np.float64]:
    """Return the weights' shares, mixed with the uniform."""
    shares: NDArray[np.float64] = state.weights / state.weights.sum()
    return (1.0 - mixing) * shares + mixing / state.weights.size


def block_bits(arms: int) -> int:
    """Return the base-two logarithm of the size of a block of weights."""
    return math.ceil(math.log2(arms) / 2)


@step
def sum_block(params: Exp3Params, state: Exp3State, block: int) -> float:
    """Sum a block of weights anew."""
    low = block << params.block_bits
    high = min(low + (1 << params.block_bits), state.weights.size)
    total = 0.0
    for i in range(low, high):
        total += state.weights[i]
    state.blocks[block] = total
    state.floors[block] = 0.5 * total
    return total


@step
def _sum_all(params: Exp3Params, state: Exp3State) -> float:
    """Sum all weights anew."""
    total = 0.0
    if state.blocks.size == 0:
        for i in range(state.weights.size):
            total += state.weights[i]
    for block in range(state.blocks.size):
        total += sum_block(params, state, block)
    return total


@step
def refresh(params: Exp3Params, state: Exp3State) -> None:
    """Sum all weights anew, rebuilding them from the losses if they have drifted too far."""
    total = _sum_all(params, state)
    if not SMALLEST < total < LARGEST:
        losses = state.losses
        smallest = losses[0]
        for i in range(losses.size):
            smallest = min(smallest, losses[i])
        for i in range(losses.size):
            losses[i] -= smallest
            state.weights[i] = math.exp(-params.learning_rate * losses[i])
        total = _sum_all(params, state)
    state.total[0] = total
    state.total[1] = 0.5 * total
    state.total[2] = 0.0
