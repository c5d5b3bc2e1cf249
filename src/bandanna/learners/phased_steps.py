"""The compiled part of Phased: how a phase is opened, drawn from and learned from."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import part, step
from bandanna._core.streams import Stream, uniform
from bandanna.inference import MOST_SQUARE
from bandanna.learners.adaptive import adaptive_draw, adaptive_part, adaptive_update
from bandanna.learners.phase_model import (
    difference,
    fit,
    log_chance,
    thompson_shares,
)
from bandanna.learners.phase_net import (
    adaptive_params,
    add_regrets,
    hand_over,
    take_over,
    watched,
)
from bandanna.learners.phase_pilot import WIDE, opens, plan_next, plan_pilot
from bandanna.learners.phase_plan import (
    CONFIRMED,
    enough,
    first_size,
    plan_first,
    plan_phase,
)
from bandanna.learners.phased_state import (
    OFTEN,
    PhasedParams,
    PhasedState,
    PhaseNumbers,
    model_of,
)
from bandanna.learners.steps import Lesson, register_phases

Floats = NDArray[np.float64]

A_BATCH = 1.0
"""What goes with a batch of the adaptive learner is its importance, at least this."""

BOLD = 0.7
"""How much of the posterior's deviation is drawn; less as the horizon comes near."""
DRAWS = 256

SUSPICIOUS = 1.5
"""From so many standard errors on a probe is repeated, long enough to make it ``CONFIRMED``."""
SHRUNK = 0.5
"""The order of two arms is in doubt when their difference is less than this part of the old."""
SURPRISING = 4.0
"""Standard errors by which the leader's level moves before all arms are looked at."""
FADED = 0.01
"""Variance added to what was known before a change."""
WINDOW = 8
"""Phases in the longest window of the guard."""


# --- opening a phase ------------------------------------------------------------------------


@part
def phased_open(params: PhasedParams, state: PhasedState, stream: Stream) -> tuple[int, float]:
    """Fix how many rounds each arm has in the next phase; returns its size and what goes with it.

    Nothing here looks at feedback of a phase that has not been released.
    """
    phase = state.phase[0]
    phase.opened += 1.0
    if phase.adaptive > 0.0:
        return _open_batch(params, state, stream)
    records = int(phase.records)
    kept = True
    if records == 0 and params.pilot > 0.0:
        kept = plan_pilot(params, state, stream)
    elif records == 0:
        plan_first(params, state, first_size(params, state.planned.size), stream)
    else:
        model = model_of(state)
        fit(model, records)
        bold = WIDE if params.pilot > 0.0 and opens(params, state) else BOLD
        if params.horizon > 0.0:
            bold *= math.sqrt(max(1.0 - phase.rounds / params.horizon, 0.02))
        thompson_shares(model, records, bold, DRAWS, state.scratch_shares, stream)
        if params.pilot > 0.0:
            kept = plan_next(params, state, stream)
        else:
            plan_phase(params, state, stream)
    if not kept:
        take_over(params, state)
        return _open_batch(params, state, stream)
    return _begin(state), _mark(phase)


@part
def _open_batch(params: PhasedParams, state: PhasedState, stream: Stream) -> tuple[int, float]:
    """Begin a batch of one arm, which the adaptive learner or the net under it draws."""
    arm, importance = adaptive_draw(adaptive_params(params, state), adaptive_part(state), stream)
    for i in range(state.planned.size):
        state.planned[i] = 0.0
    state.planned[arm] = state.phase[0].batch
    return _begin(state), importance


@step
def _mark(phase: PhaseNumbers) -> float:
    """Return what goes with a phase: below 1, while a batch has its importance."""
    return float(1.0 / (1.0 + phase.opened))


@step
def _begin(state: PhasedState) -> int:
    """Let the phase that is planned begin."""
    phase = state.phase[0]
    size = 0.0
    lead = 0
    for i in range(state.planned.size):
        size += state.planned[i]
        if state.planned[i] > state.planned[lead]:
            lead = i
    phase.length = size
    phase.left = size
    phase.lead = lead
    phase.rounds += size
    for i in range(state.planned.size):
        state.left[i] = state.planned[i]
        if state.planned[i] > 0.0:
            state.looked[i] = phase.rounds
    return int(size)


# --- drawing from it ------------------------------------------------------------------------


@step
def phased_draw(params: PhasedParams, state: PhasedState, stream: Stream) -> tuple[int, float]:
    """Draw an arm from what is left of the phase; returns it and its share of the phase."""
    return draw_from(state.planned, state.left, state.phase[0], stream)


@step
def draw_from(
    planned: Floats, left: Floats, phase: PhaseNumbers, stream: Stream
) -> tuple[int, float]:
    """Draw without replacement: a phase's rounds are a random permutation.

    Where arms were retired nothing may be left; then arms are drawn by their shares.
    """
    target = uniform(stream) * phase.left
    arm = int(phase.lead)
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
    phase.left -= 1.0
    return arm, planned[arm] / phase.length


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
    return draw_among(state.planned, state.left, state.phase[0], allowed, stream)


@step
def draw_among(
    planned: Floats, left: Floats, phase: PhaseNumbers, allowed: NDArray[np.bool_], stream: Stream
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
        phase.left -= 1.0
    return arm, weight / total


# --- learning from it -----------------------------------------------------------------------


@part
def phased_learn(
    params: PhasedParams,
    state: PhasedState,
    memo: float,
    counts: Floats,
    values: Floats,
    squares: Floats,
) -> None:
    """Learn from what a phase released: means of the arms that were played, and of squares."""
    phase = state.phase[0]
    if memo >= A_BATCH:
        own = adaptive_params(params, state)
        for i in range(counts.size):
            # With eligible= some rounds of the batch may have been of other arms.
            if 2.0 * counts[i] > phase.batch:
                lesson = Lesson(i, memo, values[i], int(counts[i]))
                adaptive_update(own, adaptive_part(state), lesson)
        return
    if phase.adaptive > 0.0:  # opened before the alarm, and of no use any more
        return
    # Of a phase that is late the probabilities are no longer known.
    if watched(params, state) and memo == _mark(phase) and add_regrets(state, counts, values):
        take_over(params, state)
        return
    if phase.records == state.rounds.shape[1]:
        _merge(state, 2, 0.0)
    record = int(phase.records)
    for i in range(counts.size):
        played = counts[i] > 0.0
        state.rounds[i, record] = counts[i]
        state.means[i, record] = values[i] if played else 0.0
        state.noise[i, record] = 2.0 / (params.epsilon * counts[i]) ** 2 if played else 0.0
        known = played and not math.isnan(squares[i])
        state.squares[i, record] = squares[i] if known else MOST_SQUARE
    phase.records += 1.0
    if params.guard and record > 0:
        _expect(state, record)
        _watch(params, state)


@part
def _expect(state: PhasedState, last: int) -> None:
    """Ask for a look at all arms where the leader's level moved by more than it usually does.

    Either all arms moved, or the leader is worse than it was: only other arms can tell.
    """
    model, weights = model_of(state), state.scratch_weights
    fit(model, last)
    effects = state.scratch_summary[0].effects
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
    sampling = state.scratch_summary[0].variance / state.rounds[lead, last]
    error = math.sqrt(sampling + state.noise[lead, last] + effects + 1.0 / weight)
    if abs(state.means[lead, last] - seen / weight) > SURPRISING * error:
        state.phase[0].look = 1.0


@part
def _watch(params: PhasedParams, state: PhasedState) -> None:
    """Test whether the order of arms has changed, in windows of the last 1, 2, 4, 8 phases."""
    phase, arms, model = state.phase[0], state.planned.size, model_of(state)
    records = int(phase.records)
    fit(model, records)
    variance = state.scratch_summary[0].variance
    level = params.false_alarm / (4.0 * max(arms - 1.0, 1.0))
    if params.horizon > 0.0:  # the shares of all phases add up to 1
        newest = 0.0
        for i in range(arms):
            newest += state.rounds[i, records - 1]
        level *= newest / params.horizon
    else:
        level /= phase.opened * (phase.opened + 1.0)
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
            phase.tests += 1.0
            beyond = log_chance(model, split, records, i, lead, variance, gap) - math.log(level)
            phase.closest = beyond if phase.tests == 1.0 else min(phase.closest, beyond)
            if beyond < 0.0:
                _alarm(params, state, split)
                return
            if window == 1:
                state.wanted[i] = enough(0.8 * gap, CONFIRMED, variance, params.epsilon)
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
    phase = state.phase[0]
    since = phase.rounds - phase.since
    phase.alarms += 1.0
    phase.since = phase.rounds
    horizon = params.horizon if params.horizon > 0.0 else phase.rounds
    if since < OFTEN * horizon:
        hand_over(params, state)
        return
    for i in range(state.wanted.size):
        state.wanted[i] = 0.0
    _merge(state, split, FADED)


@part
def _merge(state: PhasedState, last: int, fade: float) -> None:
    """Merge the first ``last`` records into one, with ``fade`` added to its variance."""
    records = int(state.phase[0].records)
    variance = state.scratch_summary[0].variance
    variance = variance if variance > 0.0 else 0.25
    for i in range(state.planned.size):
        rounds = 0.0
        weight = 0.0
        seen = 0.0
        square = 0.0
        for j in range(last):
            if state.rounds[i, j] > 0.0:
                each = 1.0 / (variance / state.rounds[i, j] + state.noise[i, j])
                rounds += state.rounds[i, j]
                square += state.rounds[i, j] * state.squares[i, j]
                weight += each
                seen += each * state.means[i, j]
        state.rounds[i, 0] = rounds
        state.squares[i, 0] = square / rounds if rounds > 0.0 else MOST_SQUARE
        state.means[i, 0] = seen / weight if weight > 0.0 else 0.0
        noise = max(1.0 / weight - variance / rounds, 0.0) + fade if weight > 0.0 else 0.0
        state.noise[i, 0] = noise
        for j in range(last, records):
            state.rounds[i, 1 + j - last] = state.rounds[i, j]
            state.means[i, 1 + j - last] = state.means[i, j]
            state.noise[i, 1 + j - last] = state.noise[i, j]
            state.squares[i, 1 + j - last] = state.squares[i, j]
    state.phase[0].records = records - last + 1.0


register_phases(PhasedParams, phased_open, phased_draw, phased_draw_among, phased_learn)
