"""The compiled part of Adaptive: how it draws, learns and forgets."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna._core.streams import Stream, uniform
from bandanna.learners.log_barrier import BEARABLE, solve_log_barrier, step_cost
from bandanna.learners.sampling import capped_inverse, pick
from bandanna.learners.steps import register
from bandanna.learners.worse import fade_on_evidence

Floats = NDArray[np.float64]

ROOT, SLOPE = 0, 1
UPDATES, COST, ABOVE, RATES, VARIANCE, DOUBTED = range(6)


class AdaptiveParams(NamedTuple):
    """Numbers for the compiled steps."""

    logarithm: float
    """Of how many losses count, at least 1; or 0 where that is not known and they are counted."""
    forget: float
    first_rate: float
    clamp: float
    level: float
    fresh: float
    doubts: float


class AdaptiveState(NamedTuple):
    """What has been learned of each arm, and what it cost."""

    losses: Floats
    """Estimated losses, discounted, up to a common constant."""
    predictions: Floats
    seen: Floats
    """How many losses of each arm its prediction rests on."""
    rates: Floats
    chances: Floats
    """The distribution last drawn from."""
    below: Floats
    """For each arm, what was cut from its losses below, divided by the probability."""
    solution: Floats
    """Of the last distribution: the normaliser, and how fast its sum changes with it."""
    recent: Floats
    """For each arm, the mean of its last losses; ``usual`` goes back further."""
    usual: Floats
    totals: Floats
    """Updates; their cost; what was cut from losses above; rates, summed as the bound needs;
    their variance; what was forgotten because an arm became worse."""


# --- drawing --------------------------------------------------------------------------------


@step
def adaptive_draw(
    params: AdaptiveParams, state: AdaptiveState, stream: Stream
) -> tuple[int, float]:
    """Draw an arm."""
    root, slope = solve_log_barrier(
        state.losses, state.predictions, state.rates, state.chances, state.solution[ROOT]
    )
    state.solution[ROOT] = root
    state.solution[SLOPE] = slope
    arm = pick(state.chances, 0, state.chances.size, uniform(stream))
    return arm, capped_inverse(state.chances[arm])


# --- learning -------------------------------------------------------------------------------


@step
def adaptive_update(
    params: AdaptiveParams,
    state: AdaptiveState,
    arm: int,
    importance: float,
    loss: float,
    rounds: int,
) -> None:
    """Add the estimate ``m_i + 1[i = arm] (loss - m) / chance``; raise the arm's rate by its cost.

    With late feedback predictions and rates are the newest. They do not depend on which arm this
    late draw gave, so the estimate is as unbiased as it would have been.
    """
    chance, rate = state.chances[arm], state.rates[arm]
    exposed = max(1.0 - chance * chance / (rate * state.solution[SLOPE]), 1e-12)
    heard = min(max(loss, -params.clamp), 1.0 + params.clamp)
    surprise = heard - state.predictions[arm]
    bearable = surprise
    if surprise * exposed < -BEARABLE * rate:
        bearable = -BEARABLE * rate / exposed
    yielding = state.solution[SLOPE] * state.solution[ROOT]
    cost = step_cost(bearable, rate, exposed, chance, yielding)
    state.below[arm] += (bearable - surprise + max(heard - loss, 0.0)) * importance
    state.totals[ABOVE] += max(loss - heard, 0.0)
    state.totals[COST] += cost
    forget = _to_forget(params, state, arm, heard)
    _forget(params, state, forget)
    state.losses[arm] += (1.0 - forget) * bearable * importance
    state.rates[arm] += cost / (params.logarithm or max(math.log(state.totals[UPDATES]), 1.0))
    _predict(params, state, arm, heard, surprise)


@step
def _to_forget(params: AdaptiveParams, state: AdaptiveState, arm: int, heard: float) -> float:
    """Return how much of what was learned fades in this step."""
    updates = state.totals[UPDATES] + 1.0
    state.totals[UPDATES] = updates
    state.seen[arm] += 1.0
    if params.doubts == 0.0:
        return params.forget
    count = min(updates, 1.0 / params.forget) if params.forget > 0.0 else updates
    more, variance = fade_on_evidence(
        state.recent, state.usual, state.totals[VARIANCE], arm, heard, state.seen[arm], count
    )
    state.totals[VARIANCE] = variance
    if more > 0.0:
        more = max(min(more, params.doubts * math.log(updates) - state.totals[DOUBTED]), 0.0)
        state.totals[DOUBTED] += more
    return min(params.forget + more, 1.0)


@step
def _forget(params: AdaptiveParams, state: AdaptiveState, forget: float) -> None:
    """Add the predictions to the losses, let losses and rates fade, sum rates for the bound."""
    first, keep, fade = params.first_rate, 1.0 - forget, 1.0 - 0.5 * forget
    total = 0.0
    smallest = math.inf
    for i in range(state.losses.size):
        rate = state.rates[i]
        total += rate
        smallest = min(smallest, rate)
        state.losses[i] = keep * (state.losses[i] + state.predictions[i])
        state.rates[i] = first + (rate - first) * fade
    state.totals[RATES] += forget * (total - smallest)


@step
def _predict(
    params: AdaptiveParams, state: AdaptiveState, arm: int, heard: float, surprise: float
) -> None:
    """Move all predictions by a part of the surprise, and the arm's towards what was heard.

    None is higher than the arm's rate can bear, so that a loss of 0 is not cut.
    """
    predictions, common = state.predictions, params.level * surprise
    weight = max(1.0 / (state.seen[arm] + 1.0), params.fresh)
    predictions[arm] += weight * (heard - predictions[arm] - common)
    for i in range(predictions.size):
        most = min(BEARABLE * state.rates[i], 1.0)
        predictions[i] = min(max(predictions[i] + common, 0.0), most)


register(AdaptiveParams, adaptive_draw, adaptive_update)
