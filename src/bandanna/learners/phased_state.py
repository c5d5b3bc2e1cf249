"""What phased knows: numbers for its compiled steps, and its state as plain arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna.learners.adaptive import AdaptiveParams
from bandanna.learners.phase_model import Model

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
    SAFE,
    BATCH,
    NOISE,
    LOSSES,
    BUDGET,
    HANDED,
) = range(18)
"""Where ``phase`` keeps: phases opened, rounds in them, records kept; size of the open phase,
rounds left to draw in it, the arm with most rounds; tests, the log of the smallest chance over
what is allowed, alarms, rounds before the last alarm; whether all arms are to be looked at;
whether the adaptive learner plays. Of the net: whether the promise is kept whatever is played from
now on. Once the adaptive learner plays: rounds in a batch, the scale of the noise on its mean,
batches to come, what regret may be in them, or 0, and the rounds before."""
PHASE = 18
"""Numbers that ``phase`` keeps."""
OFTEN = 0.25
"""An alarm sooner than this share of the horizon leaves the rest to the adaptive learner."""


class PhasedParams(NamedTuple):
    """Numbers for the compiled steps."""

    epsilon: float
    horizon: float
    """Rounds in all, or 0."""
    probes: bool
    guard: bool
    false_alarm: float
    budget: float
    """What expected regret must not exceed, in rounds; infinite where there is no net."""
    batch: int
    """Rounds in a batch of the adaptive learner."""
    net_batch: int
    """Rounds in a batch of centred EXP3, should it have to play the rest."""
    pilot: float
    """Rounds of each arm in a pilot before the first long phase; 0 for none."""
    premium: float
    """Share of what was lost so far that looking at quiet arms may cost in the rest of the run."""
    adaptive: AdaptiveParams


class PhasedState(NamedTuple):
    """What was released of each arm in each phase, the open phase, and the adaptive learner."""

    rounds: Floats
    """By arm and phase; so are the next three."""
    means: Floats
    noise: Floats
    """The variance of the noise on a mean."""
    squares: Floats
    """Means of squares around the middle of the range; the most they can be where unknown."""
    planned: Floats
    """Rounds of each arm in the open phase."""
    left: Floats
    """Those of them that are still to be drawn."""
    looked: Floats
    """When each arm was last planned for, in rounds."""
    wanted: Floats
    """Rounds that a suspicious arm is to be probed with."""
    odds: Floats
    """Probability with which each arm was to be in the open phase."""
    guesses: Floats
    """What each arm's mean was expected to be in it."""
    regrets: Floats
    """Estimated regret so far against each arm, without bias."""
    limits: Floats
    """How large that may be after the open phase."""
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
    scratch_counts: Floats


@step
def model_of(state: PhasedState) -> Model:
    """Return the part of the state that the model works on."""
    return Model(
        state.rounds,
        state.means,
        state.noise,
        state.squares,
        state.scratch_fitted,
        state.scratch_precision,
        state.scratch_errors,
        state.scratch_weights,
        state.scratch_mixed,
        state.scratch_solved,
        state.scratch_drawn,
        state.scratch_summary,
    )
