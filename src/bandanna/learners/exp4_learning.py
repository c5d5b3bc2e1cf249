"""How EXP4 learns: from the loss of one arm, plain or centred, or from an estimate for each expert.

Several loops are written more than once: one that chooses inside would not be vectorised.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bandanna._core.advice import Advice
from bandanna._core.compiled import step
from bandanna.learners.centring import entropy_baseline
from bandanna.learners.exp4_weights import (
    NEGLIGIBLE,
    SMALL,
    TINY,
    Exp4Params,
    Exp4State,
    exp_small,
    exp_tiny,
    rebuild,
    settle,
)


@step
def exp4_update(
    params: Exp4Params, state: Exp4State, advice: Advice, arm: int, importance: float, loss: float
) -> None:
    """Learn from one loss of an arm that was drawn with that importance on that advice.

    Centred EXP4 needs the advice on all arms; plain EXP4 only that on the arm played.
    """
    if params.centred:
        _learn_centred(params, state, advice, arm, importance, loss)
    else:
        exp4_learn(params, state, advice, arm, loss * importance)


@step
def _learn_centred(
    params: Exp4Params, state: Exp4State, advice: Advice, arm: int, importance: float, loss: float
) -> None:
    """Estimate the losses of all arms, and count them for every expert as far as it advised them.

    The arms' probabilities, on which the baselines depend, are those the newest weights give.
    """
    estimates, losses, weights = state.scratch_arms, state.losses, state.weights
    _probabilities(state, advice)
    cost = 0.0
    growth = 0.0
    for i in range(params.arms):
        z = estimates[i] / params.learning_rate
        baseline, arm_cost = entropy_baseline(z)
        cost += arm_cost
        estimates[i] = baseline - 0.5
        if i == arm:
            estimates[i] += (loss - baseline) * importance
        growth = max(growth, -params.learning_rate * estimates[i])
    state.cost[0] += 1.0
    state.cost[1] += cost
    if advice.ndim == 1:
        for j in range(weights.size):
            losses[j] += estimates[advice[j]]
        for i in range(params.arms):
            estimates[i] = math.exp(-params.learning_rate * estimates[i])
        for j in range(weights.size):
            weight = weights[j] * estimates[advice[j]]
            weights[j] = weight if weight > NEGLIGIBLE else 0.0
    else:
        scratch = state.scratch
        for j in range(weights.size):
            scratch[j] = 0.0
        for i in range(params.arms):
            for j in range(weights.size):
                scratch[j] += estimates[i] * advice[i, j]
        for j in range(weights.size):
            losses[j] += scratch[j]
            weight = weights[j] * math.exp(-params.learning_rate * scratch[j])
            weights[j] = weight if weight > NEGLIGIBLE else 0.0
    settle(params, state, growth)


@step
def _probabilities(state: Exp4State, advice: Advice) -> None:
    """Fill the room for arms with their probabilities: the advice mixed by the weights."""
    chances, weights = state.scratch_arms, state.weights
    scale = 1.0 / state.total[0]
    for i in range(chances.size):
        chances[i] = 0.0
    if advice.ndim == 1:
        for j in range(weights.size):
            chances[advice[j]] += weights[j] * scale
    else:
        for i in range(chances.size):
            total = 0.0
            for j in range(weights.size):
                total += weights[j] * advice[i, j]
            chances[i] = total * scale


@step
def exp4_learn(
    params: Exp4Params, state: Exp4State, advice: Advice, arm: int, estimate: float
) -> None:
    """Count an estimated loss of an arm for every expert, as far as it advised the arm."""
    losses, weights = state.losses, state.weights
    exponent = -params.learning_rate * estimate
    if advice.ndim == 1:
        factor = math.exp(exponent)
        for j in range(weights.size):
            says_so = advice[j] == arm
            losses[j] += estimate if says_so else 0.0
            weight = weights[j] * (factor if says_so else 1.0)
            weights[j] = weight if weight > NEGLIGIBLE else 0.0
    # Three times the same loop: one that chooses inside would not be vectorised.
    elif abs(exponent) <= TINY:
        for j in range(weights.size):
            losses[j] += estimate * advice[arm, j]
            weight = weights[j] * exp_tiny(exponent * advice[arm, j])
            weights[j] = weight if weight > NEGLIGIBLE else 0.0
    elif abs(exponent) <= SMALL:
        for j in range(weights.size):
            losses[j] += estimate * advice[arm, j]
            weight = weights[j] * exp_small(exponent * advice[arm, j])
            weights[j] = weight if weight > NEGLIGIBLE else 0.0
    else:
        for j in range(weights.size):
            losses[j] += estimate * advice[arm, j]
            weight = weights[j] * math.exp(exponent * advice[arm, j])
            weights[j] = weight if weight > NEGLIGIBLE else 0.0
    settle(params, state, exponent)


@step
def exp4_learn_all(params: Exp4Params, state: Exp4State, estimates: NDArray[np.float64]) -> None:
    """Count an estimated loss for each expert."""
    for j in range(estimates.size):
        state.losses[j] += estimates[j]
    rebuild(params, state)
