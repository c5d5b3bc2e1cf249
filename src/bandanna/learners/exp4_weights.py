"""The weights of EXP4's experts: what they are kept in, their sum, and how they are rebuilt."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step

SMALLEST, LARGEST = 1e-9, 1e9
"""Weights are rebuilt from the losses when their sum leaves this interval."""

NEGLIGIBLE = 1e-280
"""Weights below this become zero until they are rebuilt: numbers near the end of the range of
floats are slow, and the share of such an expert is below 10**-270 anyway."""

MOST_GROWTH = 300.0
"""Negative losses let weights grow, zeros excepted. Before a zero could have grown by more than
``exp(300)``, which is still negligible, all are rebuilt."""

LANES = 8
TINY, SMALL = 1.0 / 16.0, 0.25
"""Up to these the exponential is a short polynomial, exact to rounding, and vectorised."""


class Exp4Params(NamedTuple):
    """Numbers for the compiled steps."""

    learning_rate: float
    mixing: float
    arms: int
    centred: bool


class Exp4State(NamedTuple):
    """Estimated losses of the experts (up to a common constant), their weights, and their sum."""

    losses: NDArray[np.float64]
    weights: NDArray[np.float64]
    total: NDArray[np.float64]
    """Sum of the weights, and by how much they may have grown since they were rebuilt."""
    scratch: NDArray[np.float64]
    """Room to compute in; means nothing between steps."""
    scratch_arms: NDArray[np.float64]
    """The same, for arms; empty unless centred."""
    cost: NDArray[np.float64]
    """When centred, updates so far and what they cost (``bandanna.learners.centred_exp3``)."""


@step
def lane_sum(weights: NDArray[np.float64]) -> float:
    """Sum in eight lanes."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    size = weights.size
    whole = size - size % LANES
    for j in range(0, whole, LANES):
        a0 += weights[j]
        a1 += weights[j + 1]
        a2 += weights[j + 2]
        a3 += weights[j + 3]
        a4 += weights[j + 4]
        a5 += weights[j + 5]
        a6 += weights[j + 6]
        a7 += weights[j + 7]
    for j in range(whole, size):
        a0 += weights[j]
    return ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))


@step
def exp_tiny(x: float) -> float:
    """The exponential for |x| <= 1/16: the first neglected term is below 2**-54."""
    p = 1.0 / 5040.0 + x * (1.0 / 40320.0)
    p = 1.0 / 720.0 + x * p
    p = 1.0 / 120.0 + x * p
    p = 1.0 / 24.0 + x * p
    p = 1.0 / 6.0 + x * p
    p = 0.5 + x * p
    p = 1.0 + x * p
    return 1.0 + x * p


@step
def exp_small(x: float) -> float:
    """The exponential for |x| <= 1/4: the first neglected term is below 2**-52."""
    p = 1.0 / 3628800.0 + x * (1.0 / 39916800.0)
    p = 1.0 / 362880.0 + x * p
    p = 1.0 / 40320.0 + x * p
    p = 1.0 / 5040.0 + x * p
    p = 1.0 / 720.0 + x * p
    p = 1.0 / 120.0 + x * p
    p = 1.0 / 24.0 + x * p
    p = 1.0 / 6.0 + x * p
    p = 0.5 + x * p
    p = 1.0 + x * p
    return 1.0 + x * p


@step
def rebuild(params: Exp4Params, state: Exp4State) -> None:
    """Compute the weights anew from the losses, the smallest of which becomes zero."""
    losses = state.losses
    smallest = losses[0]
    for j in range(losses.size):
        smallest = min(smallest, losses[j])
    for j in range(losses.size):
        losses[j] -= smallest
        weight = math.exp(-params.learning_rate * losses[j])
        state.weights[j] = weight if weight > NEGLIGIBLE else 0.0
    state.total[0] = lane_sum(state.weights)
    state.total[1] = 0.0


@step
def settle(params: Exp4Params, state: Exp4State, growth: float) -> None:
    """Sum the weights anew after an update in which they grew by ``exp(growth)`` at most."""
    state.total[0] = lane_sum(state.weights)
    state.total[1] += max(growth, 0.0)
    if not SMALLEST < state.total[0] < LARGEST or state.total[1] > MOST_GROWTH:
        rebuild(params, state)
