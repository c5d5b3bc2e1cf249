"""The net under phases: regret is estimated without bias, and bounded for any losses.

The rounds of a phase are a random permutation, and which quiet arms are probed is drawn with known
probabilities. So the regret of a phase against every arm has an estimate whose expectation is right
whatever the losses are. While the estimates leave room, phases are played. When one more phase
might use it up, centred EXP3 plays the rest, as under the adaptive learner. The theorem and its
proof are in ``docs/theory/phases.md``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import part, step
from bandanna._core.types import UNITS
from bandanna.learners.adaptive import AdaptiveParams, adaptive_part, watch_net
from bandanna.learners.net import rate_for, rest_regret
from bandanna.learners.phased_state import PhasedParams, PhasedState

Floats = NDArray[np.float64]

ROOM = 0.9
"""How much of the room for regret the jump of an estimate may take: it decides how often arms that
are not played are probed."""
CALM = 1.2
"""An arm needs no probes while the leader's losses, so many times, do not use up the room."""
PHASE_ROOM = 0.25
"""How much of it a phase may take."""


@step
def noise_of(epsilon: float, batch: float) -> float:
    """Return the scale of the noise on a batch's mean, as ``theory.adaptive.released_noise``."""
    return float(-1.0 / (batch * UNITS * math.expm1(-epsilon / UNITS)))


@step
def watched(params: PhasedParams, state: PhasedState) -> bool:
    """Whether the promise still depends on what is played."""
    return params.budget < math.inf and state.phase[0].safe == 0.0


@step
def largest_regret(state: PhasedState) -> float:
    """Return the largest estimate of regret so far."""
    most = state.regrets[0]
    for i in range(state.regrets.size):
        most = max(most, state.regrets[i])
    return float(most)


@step
def rest_of(epsilon: float, arms: int, batch: float, rounds: float) -> float:
    """Bound the regret of centred EXP3 in so many rounds, in batches of this length."""
    if rounds <= 0.0:
        return 0.0
    losses = max(math.floor(rounds / batch), 1.0)
    bound = rest_regret(rate_for(losses, arms), arms, noise_of(epsilon, batch))
    return min(batch * (bound + 1.0), rounds)


@step
def room(params: PhasedParams, state: PhasedState, size: float) -> float:
    """Return how much regret may be after a phase of this length, against any arm."""
    left = params.horizon - state.phase[0].rounds - size
    return params.budget - rest_of(params.epsilon, state.regrets.size, params.net_batch, left)


@part
def note_safety(params: PhasedParams, state: PhasedState) -> None:
    """Stop watching once the rounds that are left cannot break the promise."""
    left = params.horizon - state.phase[0].rounds
    if largest_regret(state) + left <= params.budget:
        state.phase[0].safe = 1.0


@part
def set_odds(params: PhasedParams, state: PhasedState, lead: int, size: float, most: float) -> None:
    """Raise the odds of arms that are not sure to be in the phase to what the net needs.

    The fewer of the expected rounds between probes, the less can an estimate jump up. An arm whose
    regret could not use up the room by what is lost at the leader's level needs no probe: its own
    losses are then counted as 0. Probes have at most ``most`` rounds, whatever is drawn.
    """
    space = room(params, state, size)
    left = max(params.horizon - state.phase[0].rounds, size)
    total, longest = 0.0, 0.0
    for i in range(state.planned.size):
        if i == lead or state.odds[i] == 1.0:
            continue
        spare = space - state.regrets[i] - size
        if state.odds[i] == 0.0 and CALM * left * state.guesses[lead] <= spare:
            state.guesses[i] = 0.0
            continue
        count = min(state.scratch_counts[i], math.floor(0.5 * most))
        state.scratch_counts[i] = count
        if count < 1.0:
            state.odds[i] = 0.0
            continue
        jump = size * (state.guesses[i] + 1.0 / (params.epsilon * count))
        spare = ROOM * spare - math.sqrt(2.0 * state.planned.size) / params.epsilon
        needed = jump / spare if spare > jump else 1.0
        state.odds[i] = max(state.odds[i], min(needed, 0.999999))
        total += state.odds[i]
        longest = max(longest, count)
    scale = 1.0
    if (total + 1.0) * longest > most and total > 0.0:
        scale = max(most / longest - 1.0, 0.0) / total
    for i in range(state.planned.size):
        if i != lead and state.odds[i] < 1.0:
            state.odds[i] *= scale
            if state.odds[i] == 0.0:
                state.guesses[i] = 0.0


@part
def set_limits(params: PhasedParams, state: PhasedState, size: float) -> bool:
    """Set how large each arm's regret may be after the phase; False if it could be larger.

    What noise may add beyond the limit, in expectation where it does, is left free. Without noise
    a phase adds at most its losses and what was expected of the arm between probes.
    """
    space = room(params, state, size)
    arms = state.planned.size
    others = math.sqrt(2.0 * arms)
    for i in range(arms):
        each, weight = 0.0, 0.0
        if state.odds[i] > 0.0:
            each = size / state.odds[i]
            weight = each / max(state.scratch_counts[i], 1.0)
        noise = (weight + others) / params.epsilon
        grid = 2.0 * (weight + arms) / UNITS
        state.limits[i] = space - noise - grid
        most = size + state.guesses[i] * max(each - size, 0.0)
        if state.regrets[i] + most > state.limits[i]:
            return False
    return True


@part
def add_regrets(state: PhasedState, counts: Floats, values: Floats) -> bool:
    """Add a phase to the estimated regrets; returns whether one passed its limit."""
    size = 0.0
    lost = 0.0
    for i in range(counts.size):
        size += counts[i]
        lost += counts[i] * values[i]
    passed = False
    for i in range(counts.size):
        state.regrets[i] += lost - size * state.guesses[i]
        if counts[i] > 0.0:
            state.regrets[i] -= size / state.odds[i] * (values[i] - state.guesses[i])
        if state.regrets[i] > state.limits[i]:
            passed = True
    return passed


@step
def _end_phases(state: PhasedState, batch: float) -> None:
    """Play batches of this size from now on."""
    state.phase[0].adaptive = 1.0
    state.phase[0].batch = batch
    state.phase[0].handed = state.phase[0].rounds


@step
def _plan_batches(params: PhasedParams, state: PhasedState, batch: float) -> None:
    """Note how noisy a batch's mean is, and how many batches are left."""
    left = params.horizon - state.phase[0].rounds
    state.phase[0].noise = noise_of(params.epsilon, batch)
    state.phase[0].losses = max(math.floor(left / batch), 1.0)


@part
def hand_over(params: PhasedParams, state: PhasedState) -> None:
    """Let the adaptive learner play the rest, with what is left of the promise."""
    phase, arms = state.phase[0], state.planned.size
    left = params.horizon - phase.rounds
    _end_phases(state, params.batch)
    if not watched(params, state):
        return
    spare = params.budget - largest_regret(state)
    if rest_of(params.epsilon, arms, params.batch, left) > spare:
        take_over(params, state)
        return
    if left <= spare:
        return
    _plan_batches(params, state, params.batch)
    phase.budget = spare / params.batch
    adaptive, own = adaptive_params(params, state), adaptive_part(state)
    watch_net(adaptive, own)
    if state.totals[0].rate > 0.0:
        state.totals[0].bound = 0.0


@part
def take_over(params: PhasedParams, state: PhasedState) -> None:
    """Let centred EXP3 play the rest."""
    phase, arms = state.phase[0], state.planned.size
    _end_phases(state, params.net_batch)
    _plan_batches(params, state, params.net_batch)
    state.totals[0].rate = rate_for(phase.losses, arms)
    state.totals[0].switched = 0.0
    for i in range(arms):
        state.losses[i] = 0.0
        state.chances[i] = 1.0 / arms


@step
def adaptive_params(params: PhasedParams, state: PhasedState) -> AdaptiveParams:
    """Return the adaptive learner's numbers, for the rounds that were left to it."""
    own, phase = params.adaptive, state.phase[0]
    watching = phase.budget > 0.0 and params.budget < math.inf
    return AdaptiveParams(
        own.logarithm,
        own.forget,
        own.first_rate,
        own.clamp,
        own.level,
        own.fresh,
        own.doubts,
        phase.noise if phase.noise > 0.0 else own.noise,
        own.margin,
        phase.losses if phase.losses > 0.0 else own.losses,
        phase.budget if watching else math.inf,
    )
