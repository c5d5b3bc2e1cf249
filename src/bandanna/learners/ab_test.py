"""The plain private A/B test: explore evenly, release one sum for each arm, play the best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.streams import Stream, uniform
from bandanna._core.types import InputError
from bandanna.learners.base import PhaseLearner, aligned_zeros
from bandanna.learners.phased_state import PHASE, PhaseNumbers
from bandanna.learners.phased_steps import phased_draw, phased_draw_among
from bandanna.learners.prior import Prior, check_prior
from bandanna.learners.records import Record
from bandanna.learners.steps import register_phases

Floats = NDArray[np.float64]

EXPLORING, COMMITTED = 0.0, 1.0


class AbTestParams(NamedTuple):
    """Numbers for the compiled steps."""

    explore: int
    """Rounds of exploration."""


class AbTestState(NamedTuple):
    """What was released of each arm while exploring, and the open phase."""

    sums: Floats
    rounds: Floats
    planned: Floats
    left: Floats
    phase: Record[PhaseNumbers]


@dataclass(frozen=True)
class AbTest(PhaseLearner):
    """Explore evenly for a share of the rounds, then play the arm with the smallest mean loss.

    The baseline that every adaptive algorithm should beat. It explores in one phase, so each arm
    has one noisy sum. Afterwards it plays one arm in phases of the same length and learns nothing
    from what they release. Where feedback of the exploration is late it explores on until it came.

    Parameters
    ----------
    arms
        Number of arms K, at least 2.
    rounds
        How many rounds there will be.
    explore
        Share of the rounds to explore in, above 0 and at most 1.
    prior
        What was released of every arm before, or None: it replaces the exploration.
    """

    arms: int
    rounds: int
    explore: float = 0.2
    prior: Prior | None = None
    name: ClassVar[str] = "ab-test"
    starts: ClassVar[bool] = True
    per_arm: ClassVar[tuple[str, ...]] = ("sums", "rounds", "planned", "left")

    def __post_init__(self) -> None:
        checks.set_fields(self, arms=checks.arms(self.arms), rounds=checks.rounds(self.rounds))
        checks.positive("explore", self.explore)
        checks.within("explore", self.explore, 0.0, 1.0)
        prior = check_prior(self.prior, self.arms)
        if prior is not None and not all(known.rounds > 0.0 for known in prior):
            raise InputError(
                "ab-test plays the best arm of the log at once, so the log must have every arm; "
                "phased tries those that it has not."
            )
        checks.set_fields(self, prior=prior)

    def params(self) -> AbTestParams:
        """Return the numbers for the compiled steps."""
        return AbTestParams(max(math.floor(self.explore * self.rounds), 1))

    def start(self) -> AbTestState:
        """Return the state before the first round."""
        state = AbTestState(*aligned_zeros(*[self.arms] * 4, PHASE))
        if self.prior is not None:
            state.rounds[:] = [known.rounds for known in self.prior]
            state.sums[:] = [known.rounds * known.mean for known in self.prior]
        return state

    def welcome(self, state: AbTestState, first: int) -> None:
        """Leave new arms out of what is known: they are tried in the exploration only."""
        state.phase[0].left = state.left.sum()
        state.phase[0].lead = float(state.left.argmax())

    def chances(self, state: AbTestState) -> Floats | None:
        """Return the shares of the open phase; None before the first."""
        return state.planned / state.phase[0].length if state.phase[0].length > 0.0 else None


@step
def _open(params: AbTestParams, state: AbTestState, stream: Stream) -> tuple[int, float]:
    planned, phase, arms = state.planned, state.phase[0], state.planned.size
    best = -1
    for i in range(arms):
        planned[i] = 0.0
        known = state.rounds[i] > 0.0
        if known and (
            best < 0 or state.sums[i] * state.rounds[best] < state.sums[best] * state.rounds[i]
        ):
            best = i
    if best >= 0:
        planned[best] = params.explore
    else:
        more = float(params.explore % arms)
        for i in range(arms):
            planned[i] = params.explore // arms
            # Which arms have one round more, or one at all, is drawn.
            if uniform(stream) * (arms - i) < more:
                planned[i] += 1.0
                more -= 1.0
    for i in range(arms):
        state.left[i] = planned[i]
        if planned[i] > planned[int(phase.lead)]:
            phase.lead = i
    phase.length = params.explore
    phase.left = params.explore
    return params.explore, COMMITTED if best >= 0 else EXPLORING


@step
def _learn(
    params: AbTestParams,
    state: AbTestState,
    memo: float,
    counts: Floats,
    values: Floats,
    squares: Floats,
) -> None:
    if memo == COMMITTED:
        return
    for i in range(counts.size):
        if counts[i] > 0.0:
            state.sums[i] += counts[i] * values[i]
            state.rounds[i] += counts[i]


register_phases(AbTestParams, _open, phased_draw, phased_draw_among, _learn)
