"""Phased: shares are fixed for a phase, every round is randomised, releases are few.

A phase is a number of rounds with a number for each arm, fixed before it begins; their order is a
random permutation. When it is over one sum is released for each arm that was played. Fewer
releases have less noise than batches of one arm, and all arms of a phase meet the same rounds, so
whatever moves all of them cancels in their differences.

Counts are fixed and the order is permuted, in place of drawing each round by itself, for two
reasons: the phase is exactly balanced, and an arm's rounds are a sample without replacement, so
confidence statements about the phase hold for any losses fixed in advance (Hoeffding 1963).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import python_source
from bandanna._core.types import InputError
from bandanna.learners.adaptive import Adaptive, adaptive_part
from bandanna.learners.base import PhaseLearner, Report, aligned_zeros
from bandanna.learners.net import NetReport
from bandanna.learners.phase_model import SUMMARY
from bandanna.learners.phase_net import noise_of
from bandanna.learners.phase_pilot import pilot_rounds
from bandanna.learners.phased_state import OFTEN, PHASE, PhasedParams, PhasedState
from bandanna.learners.phased_steps import A_BATCH
from bandanna.learners.prior import Prior, check_prior
from bandanna.learners.stationarity import GuardReport

Floats = NDArray[np.float64]

RECORDS = 64
"""Phases that are kept apart; older ones are merged."""
FEWER_RECORDS, MANY_ARMS = 16, 10_000
FIRST_RATE = 0.6
"""First rate of the adaptive learner where there is a net, as in ``theory.adaptive``."""


@dataclass(frozen=True)
class Phased(PhaseLearner):
    """Play phases with shares from a model of arms and phase effects, and watch the order of arms.

    Shares are those of Thompson sampling from a mixed model, with deviations that shrink as the
    horizon comes near. Arms that are not played are probed from time to time. When differences
    between arms contradict earlier ones, what was known fades; when that happens early or again
    soon, the adaptive learner plays the rest.

    Parameters
    ----------
    arms
        Number of arms K, from 2 to 100,000.
    epsilon
        The privacy parameter of the releases: Laplace noise of scale ``1 / epsilon`` on a sum.
    rounds
        How many rounds there will be, if that is known. Without it phases grow.
    probes
        Look at arms that are not played from time to time. Without probes regret on steady losses
        is smaller, and an arm that becomes the best unseen is never found.
    guard
        Test whether the order of arms changes.
    false_alarm
        Probability of an alarm, at most, in a run in which differences between arms are steady, by
        design: tails are bounded as if means and weights were known. ``python -m benchmarks.guard``
        measures it.
    budget
        What expected regret must not exceed, in rounds, or None. Probes are then drawn at random,
        so that regret is estimated without bias; when it comes too close, centred EXP3 plays the
        rest. Needs the number of rounds, and probes.
    prior
        What was released of each arm before, or None: it counts as a phase before the first. Not
        with a budget.
    pilot
        Begin with a pilot, after which arms far behind leave, and let probes cost a share of what
        was lost. A budget needs it.
    premium
        That share.
    """

    arms: int
    epsilon: float
    rounds: int | None = None
    probes: bool = True
    guard: bool = True
    false_alarm: float = 0.005
    budget: float | None = None
    prior: Prior | None = None
    pilot: bool = False
    premium: float = 0.15
    name: ClassVar[str] = "phased"
    watches: ClassVar[bool] = True
    starts: ClassVar[bool] = True
    per_arm: ClassVar[tuple[str, ...]] = (
        *("rounds", "means", "noise", "squares", "planned", "left", "looked", "wanted"),
        *("odds", "guesses", "regrets", "limits"),
        *Adaptive.per_arm,
    )

    def __post_init__(self) -> None:
        checks.set_fields(self, arms=checks.arms(self.arms))
        most = checks.MOST_ARMS_IN_PHASES
        if self.arms > most:
            raise InputError(f"phased plays at most {most:,} arms; got {self.arms:,}.")
        checks.epsilon(self.epsilon)
        checks.within("false_alarm", self.false_alarm, 1e-12, 1.0)
        if self.rounds is not None:
            checks.set_fields(self, rounds=checks.rounds(self.rounds))
        if self.budget is not None:
            checks.positive("budget", self.budget)
            if self.rounds is None or not self.probes or not self.pilot:
                raise InputError("a budget needs rounds=, probes and a pilot.")
            if self.prior is not None:
                raise InputError("a budget is for runs that start from nothing.")
        checks.positive("premium", self.premium)
        checks.set_fields(self, prior=check_prior(self.prior, self.arms))

    def params(self) -> PhasedParams:
        """Return the numbers for the compiled steps."""
        known = float(self.epsilon), float(self.rounds or 0)
        watch = bool(self.probes), bool(self.guard)
        odds = float(self.false_alarm), float(self.budget or math.inf)
        batches = self._rounds(2.5 * math.sqrt(8.0)), self._rounds(2.0)
        pilot = pilot_rounds(self.epsilon) if self.pilot else 0.0
        return PhasedParams(
            *known, *watch, *odds, *batches, pilot, float(self.premium), self._adaptive().params()
        )

    def _rounds(self, multiple: float) -> int:
        return min(max(1, round(multiple / self.epsilon)), checks.MAX_ROUNDS)

    def _adaptive(self) -> Adaptive:
        """Return the learner that plays after an early alarm, as if for the whole run."""
        batch = self._rounds(2.5 * math.sqrt(8.0))
        memory = None if self.rounds is None else max(self.rounds / batch, 1.0)
        if self.budget is None or self.rounds is None:
            return Adaptive(self.arms, memory=memory)
        losses, noise = max(self.rounds // batch, 1), python_source(noise_of)(self.epsilon, batch)
        own = Adaptive(self.arms, losses, memory, first_rate=FIRST_RATE, noise=noise)
        return replace(own, clamp=max(own.clamp, own.margin() + noise))

    def start(self) -> PhasedState:
        """Return the state before the first round."""
        arms = self.arms
        records = RECORDS if arms <= MANY_ARMS else FEWER_RECORDS
        by_phase = (arms, records)
        by_arm_and_phase = ("rounds", "means", "noise", "squares", "scratch_weights")
        by_arm: tuple[str, ...] = ("planned", "left", "looked", "wanted")
        by_arm += ("odds", "guesses", "regrets", "limits", "scratch_counts")
        by_arm += ("scratch_fitted", "scratch_precision", "scratch_errors", "scratch_shares")
        arrays: dict[str, Floats] = {name: np.zeros(by_phase) for name in by_arm_and_phase}
        arrays |= dict(zip(by_arm, aligned_zeros(*[arms] * len(by_arm)), strict=True))
        arrays |= self._adaptive().start()._asdict()
        arrays["phase"] = np.zeros(1, PHASE)
        arrays["scratch_mixed"] = np.zeros((records, records))
        arrays["scratch_solved"], arrays["scratch_drawn"] = np.zeros((2, records))
        arrays["scratch_summary"] = np.zeros(1, SUMMARY)
        state = PhasedState(**arrays)
        if self.prior is not None:
            for arm, known in enumerate(self.prior):
                state.rounds[arm, 0], state.means[arm, 0] = known.rounds, known.mean
                state.noise[arm, 0] = known.noise
                state.squares[arm, 0] = known.square
            state.phase[0].records = 1.0
            # If the run contradicts the log, the log fades: that is no change within the run.
            state.phase[0].since = -OFTEN * (self.rounds or 0)
        return state

    def with_arms(self, state: NamedTuple, kept: list[int], added: int) -> tuple[Self, NamedTuple]:
        """Return a learner for other arms: its budget was for those that there were."""
        learner, fresh = super().with_arms(state, kept, added)
        return replace(learner, budget=None), fresh

    def take_back(self, state: NamedTuple, arm: int, importance: float) -> None:
        """Forget a batch of one arm that taught nothing; phases need nothing of the kind."""
        assert isinstance(state, PhasedState)
        if importance >= A_BATCH:
            self._adaptive().take_back(python_source(adaptive_part)(state), arm, importance)

    def adjust(self, state: NamedTuple, planned: int, had: int) -> None:
        """Count the rounds there were; where single batches were to follow, begin again.

        Phases that close by the clock cannot become batches of one arm: after an alarm that would
        leave the rest to the adaptive learner, everything that was learned is forgotten.
        """
        assert isinstance(state, PhasedState)
        state.phase[0].rounds += had - planned
        if state.phase[0].adaptive > 0.0:
            phase = state.phase[0]
            kept = phase.rounds, phase.opened, phase.tests, phase.alarms
            for name, fresh in self.start()._asdict().items():
                getattr(state, name)[...] = fresh
            phase.rounds, phase.opened, phase.tests, phase.alarms = kept
            phase.since = phase.rounds

    def welcome(self, state: NamedTuple, first: int) -> None:
        """Know nothing of new arms: they enter with the next phase."""
        assert isinstance(state, PhasedState)
        state.phase[0].left = state.left.sum()
        state.phase[0].lead = float(state.left.argmax())
        self._adaptive().welcome(python_source(adaptive_part)(state), first)

    def chances(self, state: NamedTuple) -> Floats | None:
        """Return the shares of the open phase; None before the first."""
        assert isinstance(state, PhasedState)
        return state.planned / state.phase[0].length if state.phase[0].length > 0.0 else None

    def report(self, state: NamedTuple) -> Report:
        """Bound the regret by what was met, in rounds, and say what guard and net have seen.

        In expectation over runs the regret against any arm is at most the mean of the bound, when
        feedback came in order.
        """
        assert isinstance(state, PhasedState)
        guard = GuardReport(
            guard=bool(self.guard),
            tests=int(state.phase[0].tests),
            alarm=bool(state.phase[0].alarms > 0.0),
            false_alarm=float(self.false_alarm),
            approximate=True,
        )
        if self.budget is None:
            return Report(guard=guard)
        net = NetReport(budget=self.budget, switched=bool(state.totals[0].rate > 0.0))
        if net["switched"]:
            batches = state.totals[0].switched
            net["after"] = int(state.phase[0].handed + batches * state.phase[0].batch)
        return Report(guard=guard, net=net)
