"""How a phase is planned: its length, shares turned into rounds, and probes of quiet arms."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import part, step
from bandanna._core.streams import Stream, uniform
from bandanna.learners.phase_net import (
    PHASE_ROOM,
    largest_regret,
    room,
    set_limits,
    watched,
)
from bandanna.learners.phased_state import PhasedParams, PhasedState

Floats = NDArray[np.float64]

OPENING, LONGEST_FIRST = 0.033, 0.2
"""Share of the horizon in the first phase, and the largest."""
FIRST, ENOUGH, PLENTY = 5.0, 10.0, 120.0
"""Rounds of each arm in the first phase: at least ``FIRST / epsilon^2``, where noise is about as
large as sampling, and no more than ``ENOUGH / epsilon^2`` or ``PLENTY``."""
GROWTH, SETTLED_GROWTH = 1.0, 0.25
"""A phase's share of the rounds before it, where arms compete and where one has almost all."""
UNKNOWN = 0.4
"""The same, times this, where the horizon is not known."""
CONTESTED, SETTLED = 0.03, 0.025
"""The same of the horizon, at most."""
ALMOST_ALL = 0.98
LONGEST = 2.0**22
"""No phase has more rounds: the rounds of an open phase are kept in memory."""
WORTH, WORTH_SETTLED = 1.0, 8.0
"""A share of fewer rounds, times epsilon, is not worth its release; nor, where one arm has almost
all, being taken for a probe."""

RARELY, MOST_RARELY = 8.0, 0.15
"""An arm with a small share is not in every phase. When it is, it has so many rounds over
epsilon^2, where noise is as large as sampling, but at most this part of the phase."""

PROBES = 3.5
"""How often in a run an arm that is not played is looked at, at least."""
OVERTAKE, CLEAR = 0.2, 2.9
"""A probe sees an arm that overtook the leader by this much, so many standard errors clear."""
CONFIRMED = 6.0
"""How many standard errors clear a probe is to be that is repeated because it was suspicious."""
PROBING, LOOKING = 0.15, 0.3
"""Most of a phase that probes may take, and when all arms are to be looked at, or one again."""
HASTE = 0.5
"""How much shorter a phase is in which a suspicious arm is probed again."""
LEAST_PHASE = 0.002
"""Share of the horizon that a phase has at least, however little room for regret there is."""


@step
def first_size(params: PhasedParams, arms: int) -> float:
    """Return the length of the first phase."""
    square = params.epsilon * params.epsilon
    size = arms * max(FIRST / square, 0.1 * PLENTY)
    if params.horizon > 0.0:
        most = arms * max(ENOUGH / square, PLENTY)
        size = max(size, min(OPENING * params.horizon, most))
        size = min(size, LONGEST_FIRST * params.horizon)
    return float(math.ceil(min(max(size, 2.0), LONGEST)))


@part
def plan_first(params: PhasedParams, state: PhasedState, size: float, stream: Stream) -> bool:
    """Give every arm as many rounds; if that were too few to tell anything, some arms at random.

    Returns whether the net lets it be played.
    """
    arms, planned = state.planned.size, state.planned
    some = min(max(math.floor(0.5 * size * params.epsilon), 2.0), float(arms))
    each = math.floor(size / some)
    if watched(params, state):
        for i in range(arms):
            state.guesses[i] = 0.5
            state.odds[i] = some / arms
            state.scratch_counts[i] = each
        if not set_limits(params, state, size):
            return False
    more = size - some * each
    for i in range(arms):
        planned[i] = 0.0
        if uniform(stream) * (arms - i) < some:
            planned[i] = each
            some -= 1.0
            if more > 0.0:
                planned[i] += 1.0
                more -= 1.0
    return True


@step
def _suspects(params: PhasedParams, state: PhasedState) -> bool:
    """Whether a probe was suspicious, so that its arm is to be probed again, and in haste.

    With the net there is no haste: random probes come on top.
    """
    if watched(params, state):
        return False
    most = 0.0
    for i in range(state.wanted.size):
        most = max(most, state.wanted[i])
    return most > 0.0


@part
def next_size(params: PhasedParams, state: PhasedState, settled: bool) -> float:
    """Return the length of a phase that is not the first."""
    phase = state.phase[0]
    size = (SETTLED_GROWTH if settled else GROWTH) * phase.rounds
    if params.horizon == 0.0:
        size *= UNKNOWN
    size = max(size, first_size(params, state.planned.size))
    if params.horizon > 0.0:
        size = min(size, (SETTLED if settled else CONTESTED) * params.horizon)
    if watched(params, state):
        space = PHASE_ROOM * (room(params, state, 0.0) - largest_regret(state))
        size = min(size, max(space, LEAST_PHASE * params.horizon))
    if settled and _suspects(params, state):
        size *= HASTE
    size = math.ceil(min(max(size, 2.0 / params.epsilon), LONGEST))
    remaining = params.horizon - phase.rounds
    if remaining > 0.0 and remaining < min(1.5 * size, LONGEST):
        size = remaining
    return float(size)


@part
def plan_phase(params: PhasedParams, state: PhasedState, stream: Stream) -> None:
    """Turn shares into rounds: small ones are left out, quiet arms are probed."""
    phase, shares, planned = state.phase[0], state.scratch_shares, state.planned
    lead = int(np.argmax(shares))
    settled = shares[lead] > ALMOST_ALL
    size = next_size(params, state, settled)
    kept = 0.0
    worth = WORTH_SETTLED if settled else WORTH
    if not settled:
        _gather(params, shares, lead, size, stream)
    for i in range(planned.size):
        if i != lead and shares[i] * size * params.epsilon < worth:
            shares[i] = 0.0
        kept += shares[i]
    given = 0.0
    for i in range(planned.size):
        planned[i] = math.floor(shares[i] / kept * size)
        given += planned[i]
    planned[lead] += size - given
    if params.probes:
        _probe(params, state, lead, size, stream)
    phase.look = 0.0


@part
def _gather(params: PhasedParams, shares: Floats, lead: int, size: float, stream: Stream) -> None:
    """Gather the small shares of several phases in one, at random: a release costs the same noise.

    An arm's expected share stays as it is. One number decides for all, so that their sum is hardly
    random.
    """
    least = min(RARELY / (params.epsilon * params.epsilon * size), MOST_RARELY)
    at = uniform(stream)
    reached = 0.0
    for i in range(shares.size):
        if i != lead and 0.0 < shares[i] < least:
            reached += shares[i] / least
            if reached > at:
                at += 1.0
                shares[i] = least
            else:
                shares[i] = 0.0


@part
def _probe(
    params: PhasedParams, state: PhasedState, lead: int, size: float, stream: Stream
) -> None:
    """Give some of the leader's rounds to quiet arms whose turn it is, suspicious ones first.

    Of arms that have waited as long, the first from a random one on: none is always the last.
    """
    phase, planned, wanted = state.phase[0], state.planned, state.wanted
    horizon = params.horizon if params.horizon > 0.0 else 2.0 * phase.rounds
    if horizon == 0.0:  # the first phase after a log
        horizon = 2.0 * size
    often = PROBES / horizon
    again = _suspects(params, state)
    most = (LOOKING if again else PROBING) * size
    budget = min((LOOKING if again or phase.look > 0.0 else PROBING) * size, planned[lead] - 1.0)
    first = int(uniform(stream) * planned.size)
    for _ in range(planned.size):
        arm = int(np.int64(-1))  # a literal would be compiled for itself
        longest = 0.0
        for k in range(planned.size):
            i = (first + k) % planned.size
            if planned[i] == 0.0:
                due = (phase.rounds + 0.5 * size - state.looked[i]) * often
                if wanted[i] > 0.0:
                    due += 1e6
                if phase.look > 0.0:
                    due += 1.0
                if due > longest:
                    arm, longest = i, due
        if arm < 0 or longest < 1.0:
            return
        count = wanted[arm]
        if count == 0.0:
            count = rounds_to_tell(params, state, arm, lead, CLEAR)
        count = math.ceil(min(count, most))
        wanted[arm] = 0.0
        if count > budget:
            return
        planned[arm] = count
        planned[lead] -= count
        budget -= count


@step
def rounds_to_tell(
    params: PhasedParams, state: PhasedState, arm: int, lead: int, clear: float
) -> float:
    """Return how many rounds of an arm show that it overtook the leader."""
    behind = max(state.scratch_fitted[arm] - state.scratch_fitted[lead], 0.0) + OVERTAKE
    return enough(behind, clear, state.scratch_summary[0].variance, params.epsilon)


@part
def guess_means(state: PhasedState, lead: int) -> None:
    """Guess every arm's mean in the phase: as far from the leader's newest as fitted."""
    newest = state.scratch_summary[0].level
    last = int(state.phase[0].records) - 1
    if state.rounds[lead, last] > 0.0:
        newest = state.means[lead, last]
    for i in range(state.planned.size):
        guess = newest + state.scratch_fitted[i] - state.scratch_fitted[lead]
        state.guesses[i] = min(max(guess, 0.0), 1.0)


@step
def enough(gap: float, errors: float, variance: float, epsilon: float) -> float:
    """Return how many rounds of an arm show a gap, so many standard errors clear, or a few more."""
    return errors * math.sqrt(2.0) / (epsilon * gap) + errors * errors * variance / (gap * gap)
