"""What phased knows: numbers for its compiled steps, and its state as plain arrays."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna.learners.adaptive import AdaptiveParams, AdaptiveTotals, SolverNumbers
from bandanna.learners.phase_model import CommonNumbers, Model
from bandanna.learners.records import Record, record_of

Floats = NDArray[np.float64]


class PhaseNumbers(Protocol):
    """What is kept of the open phase and of all before it."""

    opened: float
    """Phases so far, the open one included."""
    rounds: float
    """Rounds in them."""
    records: float
    """Phases of which records are kept."""
    length: float
    """Rounds of the open phase."""
    left: float
    """How many of them are to be drawn yet."""
    lead: float
    """The arm that has most."""
    tests: float
    closest: float
    """The log of the smallest chance in a test, over what is allowed."""
    alarms: float
    since: float
    """Rounds before the last alarm."""
    look: float
    """1 where all arms are to be looked at."""
    adaptive: float
    """1 once the adaptive learner, or the net under it, plays."""
    safe: float
    """1 once the promise is kept whatever is played."""
    batch: float
    """Once the adaptive learner plays: rounds in a batch."""
    noise: float
    """The scale of the noise on a batch's mean."""
    losses: float
    """Batches to come, when it was handed the rest."""
    budget: float
    """What regret may be in them, in batches, or 0."""
    handed: float
    """Rounds before it plays."""


PHASE = record_of(PhaseNumbers)

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
    phase: Record[PhaseNumbers]
    losses: Floats
    predictions: Floats
    seen: Floats
    rates: Floats
    chances: Floats
    below: Floats
    solution: Record[SolverNumbers]
    recent: Floats
    usual: Floats
    totals: Record[AdaptiveTotals]
    rest: Floats
    scratch_fitted: Floats
    scratch_precision: Floats
    scratch_errors: Floats
    scratch_weights: Floats
    scratch_mixed: Floats
    scratch_solved: Floats
    scratch_drawn: Floats
    scratch_summary: Record[CommonNumbers]
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
