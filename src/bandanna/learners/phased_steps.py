"""The compiled part of Phased: how a phase is opened, drawn from and learned from."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import part, step
from bandanna._core.streams import Stream, uniform
from bandanna.learners.adaptive_steps import (
    AdaptiveParams,
    AdaptiveState,
    adaptive_draw,
    adaptive_update,
)
from bandanna.learners.phase_guard import difference, log_chance
from bandanna.learners.phase_model import EFFECTS, VARIANCE, Model, fit, thompson_shares
from bandanna.learners.steps import register_phases

Floats = NDArray[np.float64]

(
    PHASES,
    ROUNDS,
    RECORDS,
    SIZE,
    LEFT,
    LEAD,
    TESTS,
    CLOSEST,
    ALARMS,
    SINCE,
    LOOK,
    ADAPTIVE,
) = range(12)
"""Where ``phase`` keeps: phases opened, rounds in them, records kept; size of the open phase,
rounds left to draw in it, the arm with most rounds; tests, the log of the smallest chance over
what is allowed, alarms, rounds before the last alarm; whether all arms are to be looked at;
whether the adaptive learner plays."""
PHASE = 12
"""Numbers that ``phase`` keeps."""

A_PHASE = 0.0
"""What goes with a phase; with a batch of the adaptive learner its importance goes."""

OPENING, LONGEST_FIRST = 0.03, 0.2
"""Share of the horizon in the first phase, and the largest."""
FIRST, ENOUGH, PLENTY = 5.0, 10.0, 120.0
"""Rounds of each arm in the first phase: at least ``FIRST / epsilon^2``, where noise is about as
large as sampling, and no more than ``ENOUGH / epsilon^2`` or ``PLENTY``."""
GROWTH, SETTLED_GROWTH = 1.0, 0.25
"""A phase's share of the rounds before it, where arms compete and where one has almost all."""
UNKNOWN = 0.4
"""The same, times this, where the horizon is not known."""
CONTESTED, SETTLED = 0.04, 0.025
"""The same of the horizon, at most."""
ALMOST_ALL = 0.98
LONGEST = 2.0**22
"""No phase has more rounds: the rounds of an open phase are kept in memory."""
WORTH = 1.0
"""A share of fewer rounds, times epsilon, is not worth its release."""

BOLD = 0.7
"""How much of the posterior's deviation is drawn; less as the horizon comes near."""
DRAWS = 256

PROBES = 4.0
"""How often in a run an arm that is not played is looked at."""
OVERTAKE, CLEAR = 0.2, 3.0
"""A probe sees an arm that overtook the leader by this much, so many standard errors clear."""
SUSPICIOUS, CONFIRMED = 1.5, 6.0
"""From so many standard errors on a probe is repeated, long enough to make it so many."""
PROBING, LOOKING = 0.15, 0.3
"""Most of a phase that probes may take, and when all arms are to be looked at."""
SHRUNK = 0.5
"""The order of two arms is in doubt when their difference is less than this part of the old."""
SURPRISING = 4.0
"""Standard errors by which the leader's level moves before all arms are looked at."""
OFTEN = 0.25
"""An alarm sooner than this share of the horizon leaves the rest to the adaptive learner."""
FADED = 0.01
"""Variance added to what was known before a change."""
WINDOW = 8
"""Phases in the longest window of the guard."""


class PhasedParams(NamedTuple):
    """Numbers for the compiled steps."""

    epsilon: float
    horizon: float
    """Rounds in all, or 0."""
    probes: bool
    guard: bool
    false_alarm: float
    batch: int
    """Rounds in a batch of the adaptive learner."""
    adaptive: AdaptiveParams


class PhasedState(NamedTuple):
    """What was released of each arm in each phase, the open phase, and the adaptive learner."""

    rounds: Floats
    """By arm and phase; so are ``means`` and ``noise``, the variance of the noise on a mean."""
    means: Floats
    noise: Floats
    planned: Floats
    """Rounds of each arm in the open phase."""
    left: Floats
    """Those of them that are still to be drawn."""
    looked: Floats
    """When each arm was last planned for, in rounds."""
    wanted: Floats
    """Rounds that a suspicious arm is to be probed with."""
    phase: Floats
    losses: Floats
    predictions: Floats
    seen: Floats
    rates: Floats
    chances: Floats
    below: Floats
    solution: Floats
    recent: Floats
    usual: Floats
    totals: Floats
    rest: Floats
    scratch_fitted: Floats
    scratch_precision: Floats
    scratch_errors: Floats
    scratch_weights: Floats
    scratch_mixed: Floats
    scratch_solved: Floats
    scratch_drawn: Floats
    scratch_summary: Floats
    scratch_shares: Floats


@step
def _model(state: PhasedState) -> Model:
    return Model(
        state.rounds,
        state.means,
        state.noise,
        state.scratch_fitted,
        state.scratch_precision,
        state.scratch_errors,
        state.scratch_weights,
        state.scratch_mixed,
        state.scratch_solved,
        state.scratch_drawn,
        state.scratch_summary,
    )


@step
def _behind(state: PhasedState) -> AdaptiveState:
    return AdaptiveState(
        state.losses,
        state.predictions,
        state.seen,
        state.rates,
        state.chances,
        state.below,
        state.solution,
        state.recent,
        state.usual,
        state.totals,
        state.rest,
    )


# --- opening a phase ------------------------------------------------------------------------


@part
def phased_open(params: PhasedParams, state: PhasedState, stream: Stream) -> tuple[int, float]:
    """Fix how many rounds each arm has in the next phase; returns its size and what goes with it.

    Nothing here looks at feedback of a phase that has not been released.
    """
    phase = state.phase
    phase[PHASES] += 1.0
    if phase[ADAPTIVE] > 0.0:
        arm, importance = adaptive_draw(params.adaptive, _behind(state), stream)
        for i in range(state.planned.size):
            state.planned[i] = 0.0
        state.planned[arm] = params.batch
        _begin(state)
        return params.batch, importance
    records = int(phase[RECORDS])
    if records == 0:
        _plan_first(params, state, stream)
    else:
        model = _model(state)
        fit(model, records)
        bold = BOLD
        if params.horizon > 0.0:
            bold *= math.sqrt(max(1.0 - phase[ROUNDS] / params.horizon, 0.02))
        thompson_shares(model, records, bold, DRAWS, state.scratch_shares, stream)
        _plan(params, state)
    return _begin(state), A_PHASE


@step
def _begin(state: PhasedState) -> int:
    """Let the phase that is planned begin."""
    phase = state.phase
    size = 0.0
    lead = 0
    for i in range(state.planned.size):
        size += state.planned[i]
        if state.planned[i] > state.planned[lead]:
            lead = i
    phase[SIZE] = size
    phase[LEFT] = size
    phase[LEAD] = lead
    phase[ROUNDS] += size
    for i in range(state.planned.size):
        state.left[i] = state.planned[i]
        if state.planned[i] > 0.0:
            state.looked[i] = phase[ROUNDS]
    return int(size)


@step
def _first(params: PhasedParams, arms: int) -> float:
    """Return the length of the first phase."""
    square = params.epsilon * params.epsilon
    size = arms * max(FIRST / square, 0.1 * PLENTY)
    if params.horizon > 0.0:
        most = arms * max(ENOUGH / square, PLENTY)
        size = max(size, min(OPENING * params.horizon, most))
        size = min(size, LONGEST_FIRST * params.horizon)
    return float(math.ceil(min(max(size, 2.0), LONGEST)))


@part
def _plan_first(params: PhasedParams, state: PhasedState, stream: Stream) -> None:
    """Give every arm as many rounds; if that were too few to tell anything, some arms at random."""
    arms, planned = state.planned.size, state.planned
    size = _first(params, arms)
    some = min(max(math.floor(0.5 * size * params.epsilon), 2.0), float(arms))
    each = math.floor(size / some)
    more = size - some * each
    for i in range(arms):
        planned[i] = 0.0
        if uniform(stream) * (arms - i) < some:
            planned[i] = each
            some -= 1.0
            if more > 0.0:
                planned[i] += 1.0
                more -= 1.0


@part
def _plan(params: PhasedParams, state: PhasedState) -> None:
    """Turn shares into rounds: small ones are left out, quiet arms are probed."""
    phase, shares, planned = state.phase, state.scratch_shares, state.planned
    lead = 0
    for i in range(planned.size):
        if shares[i] > shares[lead]:
            lead = i
    settled = shares[lead] > ALMOST_ALL
    size = (SETTLED_GROWTH if settled else GROWTH) * phase[ROUNDS]
    if params.horizon == 0.0:
        size *= UNKNOWN
    size = max(size, _first(params, planned.size))
    if params.horizon > 0.0:
        size = min(size, (SETTLED if settled else CONTESTED) * params.horizon)
    size = math.ceil(min(max(size, 2.0 / params.epsilon), LONGEST))
    remaining = params.horizon - phase[ROUNDS]
    if remaining > 0.0 and remaining < min(1.5 * size, LONGEST):
        size = remaining
    kept = 0.0
    for i in range(planned.size):
        if i != lead and shares[i] * size * params.epsilon < WORTH:
            shares[i] = 0.0
        kept += shares[i]
    given = 0.0
    for i in range(planned.size):
        planned[i] = math.floor(shares[i] / kept * size)
        given += planned[i]
    planned[lead] += size - given
    if params.probes:
        _probe(params, state, lead, size)
    phase[LOOK] = 0.0


@part
def _probe(params: PhasedParams, state: PhasedState, lead: int, size: float) -> None:
    """Give some of the leader's rounds to quiet arms whose turn it is, suspicious ones first."""
    phase, planned, wanted = state.phase, state.planned, state.wanted
    horizon = params.horizon if params.horizon > 0.0 else 2.0 * phase[ROUNDS]
    most = PROBING * size
    budget = min((LOOKING if phase[LOOK] > 0.0 else PROBING) * size, planned[lead] - 1.0)
    for _ in range(planned.size):
        arm = -1
        longest = 0.0
        for i in range(planned.size):
            if planned[i] == 0.0:
                due = (phase[ROUNDS] + 0.5 * size - state.looked[i]) * PROBES / horizon
                if wanted[i] > 0.0:
                    due += 1e6
                if phase[LOOK] > 0.0:
                    due += 1.0
                if due > longest:
                    arm, longest = i, due
        if arm < 0 or longest < 1.0:
            return
        count = wanted[arm]
        if count == 0.0:
            behind = max(state.scratch_fitted[arm] - state.scratch_fitted[lead], 0.0) + OVERTAKE
            count = _enough(behind, CLEAR, state.scratch_summary[VARIANCE], params.epsilon)
        count = math.ceil(min(count, most))
        wanted[arm] = 0.0
        if count > budget:
            return
        planned[arm] = count
        planned[lead] -= count
        budget -= count


@step
def _enough(gap: float, errors: float, variance: float, epsilon: float) -> float:
    """Return how many rounds of an arm show a gap, so many standard errors clear, or a few more."""
    return errors * math.sqrt(2.0) / (epsilon * gap) + errors * errors * variance / (gap * gap)


# --- drawing from it ------------------------------------------------------------------------


@step
def phased_draw(params: PhasedParams, state: PhasedState, stream: Stream) -> tuple[int, float]:
    """Draw an arm from what is left of the phase; returns it and its share of the phase."""
    return draw_from(state.planned, state.left, state.phase, stream)


@step
def draw_from(planned: Floats, left: Floats, phase: Floats, stream: Stream) -> tuple[int, float]:
    """Draw without replacement: a phase's rounds are a random permutation.

    Where arms were retired nothing may be left; then arms are drawn by their shares.
    """
    target = uniform(stream) * phase[LEFT]
    arm = int(phase[LEAD])
    if target >= left[arm] or left[arm] <= 0.0:
        target -= left[arm]
        lead = arm
        arm = -1
        for i in range(left.size):
            if i != lead and left[i] > 0.0:
                arm = i
                if target < left[i]:
                    break
                target -= left[i]
        if arm < 0:
            if left[lead] <= 0.0:
                return _by_shares(planned, stream)
            arm = lead
    left[arm] -= 1.0
    phase[LEFT] -= 1.0
    return arm, planned[arm] / phase[SIZE]


@step
def _by_shares(planned: Floats, stream: Stream) -> tuple[int, float]:
    total = 0.0
    for i in range(planned.size):
        total += planned[i]
    target = uniform(stream)
    if total <= 0.0:
        return int(target * planned.size), 1.0 / planned.size
    target *= total
    arm = -1
    for i in range(planned.size):
        if planned[i] > 0.0:
            arm = i
            if target < planned[i]:
                break
            target -= planned[i]
    return arm, planned[arm] / total


@step
def phased_draw_among(
    params: PhasedParams, state: PhasedState, allowed: NDArray[np.bool_], stream: Stream
) -> tuple[int, float]:
    """Draw among eligible arms, from what is left of the phase."""
    return draw_among(state.planned, state.left, state.phase, allowed, stream)


@step
def draw_among(
    planned: Floats, left: Floats, phase: Floats, allowed: NDArray[np.bool_], stream: Stream
) -> tuple[int, float]:
    """Draw among eligible arms by what is left of them; else by their shares; else evenly."""
    remaining = 0.0
    shares = 0.0
    count = 0.0
    for i in range(left.size):
        if allowed[i]:
            remaining += left[i]
            shares += planned[i]
            count += 1.0
    target = uniform(stream)
    total = remaining if remaining > 0.0 else (shares if shares > 0.0 else count)
    target *= total
    arm = -1
    weight = 0.0
    for i in range(left.size):
        if allowed[i]:
            each = left[i] if remaining > 0.0 else (planned[i] if shares > 0.0 else 1.0)
            if each > 0.0:
                arm, weight = i, each
                if target < each:
                    break
                target -= each
    if remaining > 0.0:
        left[arm] -= 1.0
        phase[LEFT] -= 1.0
    return arm, weight / total


# --- learning from it -----------------------------------------------------------------------


@part
def phased_learn(
    params: PhasedParams, state: PhasedState, memo: float, counts: Floats, values: Floats
) -> None:
    """Learn from what a phase released: the mean of each arm that was played."""
    phase = state.phase
    if memo > A_PHASE:
        for i in range(counts.size):
            # With eligible= some rounds of the batch may have been of other arms.
            if 2.0 * counts[i] > params.batch:
                adaptive_update(params.adaptive, _behind(state), i, memo, values[i], int(counts[i]))
        return
    if phase[ADAPTIVE] > 0.0:  # opened before the alarm, and of no use any more
        return
    if phase[RECORDS] == state.rounds.shape[1]:
        _merge(state, 2, 0.0)
    record = int(phase[RECORDS])
    for i in range(counts.size):
        played = counts[i] > 0.0
        state.rounds[i, record] = counts[i]
        state.means[i, record] = values[i] if played else 0.0
        state.noise[i, record] = 2.0 / (params.epsilon * counts[i]) ** 2 if played else 0.0
    phase[RECORDS] += 1.0
    if params.guard and record > 0:
        _expect(state, record)
        _watch(params, state)


@part
def _expect(state: PhasedState, last: int) -> None:
    """Ask for a look at all arms where the leader's level moved by more than it usually does.

    Either all arms moved, or the leader is worse than it was: only other arms can tell.
    """
    model, weights = _model(state), state.scratch_weights
    fit(model, last)
    effects = state.scratch_summary[EFFECTS]
    lead = 0
    for i in range(state.planned.size):
        if state.rounds[i, last] > state.rounds[lead, last]:
            lead = i
    if weights[lead, last - 1] == 0.0:
        return
    weight = 0.0
    seen = 0.0
    for j in range(max(last - 3, 0), last):
        if weights[lead, j] > 0.0:
            each = 1.0 / (1.0 / weights[lead, j] + effects)
            weight += each
            seen += each * state.means[lead, j]
    sampling = state.scratch_summary[VARIANCE] / state.rounds[lead, last]
    error = math.sqrt(sampling + state.noise[lead, last] + effects + 1.0 / weight)
    if abs(state.means[lead, last] - seen / weight) > SURPRISING * error:
        state.phase[LOOK] = 1.0


@part
def _watch(params: PhasedParams, state: PhasedState) -> None:
    """Test whether the order of arms has changed, in windows of the last 1, 2, 4, 8 phases."""
    phase, arms, model = state.phase, state.planned.size, _model(state)
    records = int(phase[RECORDS])
    fit(model, records)
    variance = state.scratch_summary[VARIANCE]
    level = params.false_alarm / (4.0 * max(arms - 1.0, 1.0))
    if params.horizon > 0.0:
        level *= SETTLED
    else:
        level /= phase[PHASES] * (phase[PHASES] + 1.0)
    window = 1
    while window <= WINDOW and window < records:
        split = records - window
        lead = _most_played(state, split, records)
        for i in range(arms):
            if i == lead:
                continue
            new, after = difference(model, split, records, i, lead, variance)
            old, before = difference(model, 0, split, i, lead, variance)
            if after == 0.0 or before == 0.0 or old <= 0.0 or new >= SHRUNK * old:
                continue
            gap = old - new
            if gap < SUSPICIOUS * math.sqrt(1.0 / after + 1.0 / before):
                continue
            phase[TESTS] += 1.0
            beyond = log_chance(model, split, records, i, lead, variance, gap) - math.log(level)
            phase[CLOSEST] = beyond if phase[TESTS] == 1.0 else min(phase[CLOSEST], beyond)
            if beyond < 0.0:
                _alarm(params, state, split)
                return
            if window == 1:
                state.wanted[i] = _enough(0.8 * gap, CONFIRMED, variance, params.epsilon)
        window *= 2


@step
def _most_played(state: PhasedState, first: int, last: int) -> int:
    lead = 0
    most = -1.0
    for i in range(state.planned.size):
        total = 0.0
        for j in range(first, last):
            total += state.rounds[i, j]
        if total > most:
            lead, most = i, total
    return lead


@part
def _alarm(params: PhasedParams, state: PhasedState, split: int) -> None:
    """Let what was known before a change fade; after a change so soon, the adaptive one plays."""
    phase = state.phase
    since = phase[ROUNDS] - phase[SINCE]
    phase[ALARMS] += 1.0
    phase[SINCE] = phase[ROUNDS]
    horizon = params.horizon if params.horizon > 0.0 else phase[ROUNDS]
    if since < OFTEN * horizon:
        phase[ADAPTIVE] = 1.0
        return
    for i in range(state.wanted.size):
        state.wanted[i] = 0.0
    _merge(state, split, FADED)


@part
def _merge(state: PhasedState, last: int, fade: float) -> None:
    """Merge the first ``last`` records into one, with ``fade`` added to its variance."""
    records = int(state.phase[RECORDS])
    variance = state.scratch_summary[VARIANCE]
    variance = variance if variance > 0.0 else 0.25
    for i in range(state.planned.size):
        rounds = 0.0
        weight = 0.0
        seen = 0.0
        for j in range(last):
            if state.rounds[i, j] > 0.0:
                each = 1.0 / (variance / state.rounds[i, j] + state.noise[i, j])
                rounds += state.rounds[i, j]
                weight += each
                seen += each * state.means[i, j]
        state.rounds[i, 0] = rounds
        state.means[i, 0] = seen / weight if weight > 0.0 else 0.0
        noise = max(1.0 / weight - variance / rounds, 0.0) + fade if weight > 0.0 else 0.0
        state.noise[i, 0] = noise
        for j in range(last, records):
            state.rounds[i, 1 + j - last] = state.rounds[i, j]
            state.means[i, 1 + j - last] = state.means[i, j]
            state.noise[i, 1 + j - last] = state.noise[i, j]
    state.phase[RECORDS] = records - last + 1.0


register_phases(PhasedParams, phased_open, phased_draw, phased_draw_among, phased_learn)
