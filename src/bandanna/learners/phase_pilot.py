"""Phases after a pilot: arms far behind leave early, and probing costs a share of what was lost.

The pilot gives every arm a few rounds, enough to see which arms are far behind. All later phases
follow the shares of Thompson sampling; the first of them, the opening, draws more widely. Arms that
are not played, or hardly, are in a phase with a probability that is fixed before it, so that regret
is estimated without bias where there is a net.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import part, step
from bandanna._core.streams import Stream, uniform
from bandanna.learners.phase_net import note_safety, set_limits, set_odds, watched
from bandanna.learners.phase_plan import (
    ALMOST_ALL,
    CONFIRMED,
    LOOKING,
    MOST_RARELY,
    PROBING,
    RARELY,
    first_size,
    guess_means,
    next_size,
    plan_first,
    rounds_to_tell,
)
from bandanna.learners.phased_state import PhasedParams, PhasedState

Floats = NDArray[np.float64]


PILOT, LEAST_PILOT = 20.0, 12.0
"""Rounds of each arm in the pilot, times epsilon, and the least. Noise on an arm's mean is then
0.07, so that arms 0.3 behind are seen."""
SHORT = 2.0
"""There is a pilot where it is so many times shorter than the first phase without one."""
OPENED, GROWN = 1.2, 4.0
"""Length of the opening, of that of the first phase without a pilot and as many arms as its shares
are worth, and of the pilot's at most."""
WIDE = 1.4
"""How much of the posterior's deviation is drawn in the opening."""
BEHIND, SOME, MOST_EVEN = 2.5, 0.05, 0.4
"""An arm that is not so many standard errors behind has such a share of the opening beside its own,
where arms are so few that this part is enough for it."""
GATHERED = 0.75
"""Where one arm has such a share, the small shares of others are gathered in few phases."""
WORTH, FEWEST = 1.0, 4.0
"""A share of fewer rounds, times epsilon, is not worth its release; nor of fewer rounds."""
MOST_OFTEN = 20.0
"""How often in a run an arm that is not played is looked at, at most."""
AT_LEAST, SPARED, INSURED = 2.4, 0.5, 0.0006
"""How often at least, while that costs no more than this share of what was lost so far, and of the
rounds of the run."""
CLEAR, SURE = 2.0, 2.5
"""A probe sees an arm that overtook the leader by ``OVERTAKE``, so many standard errors clear; one
for the net, which needs less noise, so many."""
ALERT = 4.0
"""How many when the leader's level moved: either all arms moved, or their order did."""
LEAST_NOISE, LITTLE_NOISE, LITTLE_SAMPLING = 6.0, 18.0, 24.0
"""Rounds, times epsilon and beside so many times the variance, whose mean tells enough for the net
and for the share of an arm that is seldom played. Fewer, and the noise of a rare arm, which counts
for all the phases that it is not in, passes for regret."""
RANDOMLY = 0.4
"""Most of a phase that arms may have of which it is drawn whether they are in it."""
GOLDEN = 0.6180339887498949
"""Which of arms that have waited as long comes first changes by this share of them."""
LEFT = 0.3
"""Share of a phase that is left at least when all probes have theirs."""


def pilot_rounds(epsilon: float) -> float:
    """Return the rounds of each arm in the pilot."""
    return float(math.ceil(max(PILOT / epsilon, LEAST_PILOT)))


@part
def plan_pilot(params: PhasedParams, state: PhasedState, stream: Stream) -> bool:
    """Plan the pilot, or the first phase where that is hardly longer.

    Returns whether the net lets it be played.
    """
    size = first_size(params, state.planned.size)
    if _pays(params, state):
        size = params.pilot * state.planned.size
    return plan_first(params, state, size, stream)


@step
def _pays(params: PhasedParams, state: PhasedState) -> bool:
    """Whether a pilot is much shorter than the first phase would be."""
    arms = state.planned.size
    return bool(SHORT * params.pilot * arms <= first_size(params, arms))


@step
def opens(params: PhasedParams, state: PhasedState) -> bool:
    """Whether only the pilot is known, and the opening comes."""
    if state.phase[0].records != 1.0:
        return False
    most = 0.0
    for i in range(state.rounds.shape[0]):
        most = max(most, state.rounds[i, 0])
    return bool(most < 1.5 * params.pilot and _pays(params, state))


@part
def _share_opening(state: PhasedState) -> None:
    """Let every arm that is not far behind have a part in the opening, whatever luck it had."""
    fitted, precision, shares = state.scratch_fitted, state.scratch_precision, state.scratch_shares
    first = int(np.argmin(fitted))
    near = 0.0
    for i in range(shares.size):
        error = math.sqrt(1.0 / precision[i] + 1.0 / precision[first])
        state.scratch_counts[i] = 1.0 if fitted[i] - fitted[first] <= BEHIND * error else 0.0
        near += state.scratch_counts[i]
    even = min(SOME * near, MOST_EVEN)
    for i in range(shares.size):
        shares[i] = (1.0 - even) * shares[i] + even * state.scratch_counts[i] / near


@step
def _opening_size(params: PhasedParams, state: PhasedState) -> float:
    """Return the length of the opening: the clearer the pilot was, the shorter."""
    square = 0.0
    for share in state.scratch_shares:
        square += share * share
    each = first_size(params, state.planned.size) / state.planned.size
    size = float(math.ceil(min(OPENED / square * each, GROWN * state.phase[0].rounds)))
    if params.horizon > 0.0:
        size = max(min(size, params.horizon - state.phase[0].rounds), 1.0)
    return size


@step
def _enough_rounds(params: PhasedParams, state: PhasedState) -> float:
    """Return how many rounds of an arm tell enough for the net."""
    sampling = LITTLE_SAMPLING * state.scratch_summary[0].variance
    return float(LITTLE_NOISE / params.epsilon + sampling)


@part
def plan_next(params: PhasedParams, state: PhasedState, stream: Stream) -> bool:
    """Turn shares into rounds, and draw which quiet arms are probed.

    Returns whether the net lets it be played.
    """
    if watched(params, state):
        note_safety(params, state)
    shares, arms = state.scratch_shares, state.planned.size
    opening = opens(params, state)
    if opening:
        _share_opening(state)
    lead = int(np.argmax(shares))
    if opening:
        size = _opening_size(params, state)
    else:
        size = next_size(params, state, shares[lead] > ALMOST_ALL)
    _set_counts(params, state, lead, size, opening)
    if params.probes and not opening:
        _set_due(params, state, lead, size)
    state.phase[0].look = 0.0
    if watched(params, state):
        guess_means(state, lead)
        for i in range(arms):
            if state.odds[i] == 0.0:
                count = rounds_to_tell(params, state, i, lead, SURE)
                count = min(count, _enough_rounds(params, state))
                state.scratch_counts[i] = math.ceil(max(count, LEAST_NOISE / params.epsilon))
        set_odds(params, state, lead, size, RANDOMLY * size)
        if not set_limits(params, state, size):
            return False
    _draw_phase(state, lead, size, stream)
    return True


@part
def _set_counts(
    params: PhasedParams, state: PhasedState, lead: int, size: float, opening: bool
) -> None:
    """Set each arm's rounds if it is in the phase, at least, and with which probability it is.

    Small shares are gathered in few phases: a release costs the same noise.
    """
    shares, counts = state.scratch_shares, state.scratch_counts
    least = 0.0
    fewest = max(WORTH / params.epsilon, FEWEST)
    if not opening and shares[lead] >= GATHERED:
        few = max(RARELY / params.epsilon**2, _enough_rounds(params, state))
        least = min(few / size, MOST_RARELY)
    for i in range(shares.size):
        if shares[i] >= least and i != lead and shares[i] * size < fewest:
            shares[i] = 0.0
        state.odds[i] = 0.0
        counts[i] = 0.0
        if i != lead and 0.0 < shares[i] >= least:
            counts[i] = math.floor(LEFT * shares[i] * size)
            state.odds[i] = 1.0
        elif i != lead and shares[i] > 0.0:
            counts[i] = math.ceil(least * size)
            state.odds[i] = shares[i] / least
    state.odds[lead] = 1.0
    counts[lead] = max(math.floor(LEFT * shares[lead] * size), 1.0)


@part
def _draw_phase(state: PhasedState, lead: int, size: float, stream: Stream) -> None:
    """Draw which arms are in the phase, by their odds, and share what they leave.

    One number decides for all (systematic sampling), so that their number is hardly random. Where
    a phase is too short for all of them, which the net rules out, the last ones are left out.
    """
    shares, planned = state.scratch_shares, state.planned
    most = size - state.scratch_counts[lead]
    given = 0.0
    for i in range(shares.size):
        looked = i != lead and state.odds[i] == 1.0 and shares[i] == 0.0
        planned[i] = state.scratch_counts[i] if looked else 0.0
        given += planned[i]
    at = uniform(stream)
    reached = 0.0
    for i in range(shares.size):
        if state.odds[i] < 1.0:
            reached += state.odds[i]
            if reached > at:
                at += 1.0
                if given + state.scratch_counts[i] <= most:
                    planned[i] = state.scratch_counts[i]
                    given += planned[i]
    left = size - given
    for i in range(shares.size):
        if i != lead and state.odds[i] == 1.0 and shares[i] > 0.0:
            planned[i] = math.floor(shares[i] * left)
            given += planned[i]
    planned[lead] = size - given


@part
def _how_often(params: PhasedParams, state: PhasedState, lead: int) -> float:
    """Return how often in a run quiet arms are looked at: for a share of what was lost so far."""
    lost, cost = 0.0, 0.0
    for i in range(state.odds.size):
        behind = max(state.scratch_fitted[i] - state.scratch_fitted[lead], 0.0)
        for j in range(int(state.phase[0].records)):
            lost += state.rounds[i, j] * behind
        if i != lead and state.odds[i] == 0.0:
            cost += behind * rounds_to_tell(params, state, i, lead, CLEAR)
    if cost == 0.0:
        return MOST_OFTEN
    least = min(AT_LEAST, SPARED * lost / cost, INSURED * params.horizon / cost)
    return min(max(params.premium * lost / cost, least), MOST_OFTEN)


@part
def _set_due(params: PhasedParams, state: PhasedState, lead: int, size: float) -> None:
    """Let quiet arms whose turn it is be probed, those that are suspicious first.

    How often their turn comes depends on what probing them costs, beside what was lost so far.
    """
    phase, wanted, counts = state.phase[0], state.wanted, state.scratch_counts
    horizon = params.horizon if params.horizon > 0.0 else 2.0 * phase.rounds
    often = _how_often(params, state, lead) / horizon
    arms = counts.size
    again = 0.0
    for i in range(arms):
        again = max(again, wanted[i])
    clear = ALERT if phase.look > 0.0 else CLEAR
    budget = (LOOKING if again > 0.0 or phase.look > 0.0 else PROBING) * size
    first = int(phase.opened * GOLDEN % 1.0 * arms)
    for _ in range(arms):
        arm = int(np.int64(-1))
        longest = 0.0
        for k in range(arms):
            i = (first + k) % arms
            if i != lead and state.odds[i] == 0.0:
                due = (phase.rounds + 0.5 * size - state.looked[i]) * often
                if wanted[i] > 0.0:
                    due += 1e6
                if phase.look > 0.0:
                    due += 1.0
                if due > longest:
                    arm, longest = i, due
        if arm < 0 or longest < 1.0:
            return
        most, count = PROBING, rounds_to_tell(params, state, arm, lead, clear)
        if wanted[arm] > 0.0:
            most = LOOKING
            count = min(wanted[arm], rounds_to_tell(params, state, arm, lead, CONFIRMED))
        count = min(math.ceil(count), math.floor(most * size))
        wanted[arm] = 0.0
        if count > budget or count == 0:
            return
        counts[arm] = count
        state.odds[arm] = 1.0
        budget -= count
