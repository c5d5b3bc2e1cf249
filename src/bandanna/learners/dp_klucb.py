"""DP-KLUCB (Azize, Wu, Honda, Orabona, Ito, Basu 2025), and a guard for when it does not apply."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import python_source, step
from bandanna._core.start import MOST_SQUARE
from bandanna._core.streams import Stream
from bandanna.any_time_normal import Moments, variance_of
from bandanna.learners.adaptive import (
    Adaptive,
    AdaptiveParams,
    AdaptiveTotals,
    SolverNumbers,
    adaptive_draw,
    adaptive_part,
    adaptive_update,
)
from bandanna.learners.base import CompiledLearner, Report, aligned_zeros
from bandanna.learners.kl_ucb import private_upper, untried
from bandanna.learners.prior import Prior, check_prior, weighed
from bandanna.learners.records import Record
from bandanna.learners.sampling import total_of
from bandanna.learners.stationarity import (
    GUARD,
    GuardNumbers,
    guard_report,
    largest_difference,
    note_test,
)
from bandanna.learners.steps import CHOSEN, Lesson, register

Floats = NDArray[np.float64]

LONGEST = checks.MAX_ROUNDS
CALMEST = 0.005
"""Losses of an arm count as varying at least so much."""
SHARE = 0.1
"""With the guard a batch is at most this share of all rounds, so that the leader is looked at."""


class DpKlucbParams(NamedTuple):
    """Numbers for the compiled steps."""

    epsilon: float
    growth: float
    first: int
    guard: bool
    false_alarm: float
    batch: int
    adaptive: AdaptiveParams


class DpKlucbState(NamedTuple):
    """What is known of each arm, what the guard has seen, and the learner that waits behind it."""

    rewards: Floats
    """Released sums of ``1 - loss``."""
    plays: Floats
    releases: Floats
    waiting: Floats
    """Batches that have not been released yet."""
    squared: Floats
    """Released sums of squares around 1/2, less the most that they could be."""
    shares: Floats
    """Each arm's share of the probability of a false alarm."""
    guard: Record[GuardNumbers]
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


@dataclass(frozen=True)
class DpKlucb(CompiledLearner):
    """Play the arm whose mean loss may still be smallest, for longer and longer, on noisy means.

    For arms whose distributions do not change, and releases with Laplace noise of scale
    ``1 / epsilon`` on a batch's sum: there its regret is within ``growth`` of the least that any
    epsilon-private policy can have. Where losses vary less than 0s and 1s do, as released squares
    say, divergences are larger by as much. Where losses change the guard notices, unless all that
    happens is that an arm no longer played becomes the best.

    Parameters
    ----------
    arms
        Number of arms K, at least 2.
    epsilon
        The privacy parameter of the releases.
    growth
        By how much an arm's rounds grow from batch to batch, above 1.
    guard
        Test each arm's releases against its earlier ones, and leave the rest to the adaptive
        learner when they contradict each other. Without it, the algorithm of the paper.
    false_alarm
        Probability of an alarm in a whole run where nothing changes, at most.
    rounds
        How many rounds there will be, if that is known: the adaptive learner remembers as many.
    prior
        What was released of each arm before, or None: the guard also compares with that.

    References
    ----------
    A. Azize, Y. Wu, J. Honda, F. Orabona, S. Ito, D. Basu. Optimal regret of Bernoulli bandits
    under global differential privacy. NeurIPS 2025.
    """

    arms: int
    epsilon: float
    growth: float = 1.5
    guard: bool = True
    false_alarm: float = 1e-4
    rounds: int | None = None
    prior: Prior | None = None
    name: ClassVar[str] = "dp-klucb"
    tells_chance: ClassVar[bool] = False
    grows: ClassVar[bool] = True
    ranks: ClassVar[bool] = True
    watches: ClassVar[bool] = True
    starts: ClassVar[bool] = True
    per_arm: ClassVar[tuple[str, ...]] = (
        *("rewards", "plays", "releases", "waiting", "squared", "shares"),
        *Adaptive.per_arm,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.epsilon(self.epsilon)
        checks.within("growth", self.growth, 1.01, 100.0)
        checks.within("false_alarm", self.false_alarm, 1e-12, 1.0)
        if self.rounds is not None:
            checks.set_fields(self, rounds=checks.rounds(self.rounds))
        checks.set_fields(self, prior=check_prior(self.prior, self.arms))

    def params(self) -> DpKlucbParams:
        """Return the numbers for the compiled steps."""
        batch = max(1, round(2.5 * math.sqrt(8.0) / self.epsilon))
        first = min(math.ceil(2.0 / self.epsilon), LONGEST) if self.guard else 1
        shape = float(self.epsilon), float(self.growth), first, bool(self.guard)
        behind = min(batch, LONGEST), self._adaptive(batch).params()
        return DpKlucbParams(*shape, float(self.false_alarm), *behind)

    def _adaptive(self, batch: int) -> Adaptive:
        memory = None if self.rounds is None else max(self.rounds / batch, 1.0)
        return Adaptive(self.arms, memory=memory)

    def start(self) -> DpKlucbState:
        """Return the state before the first round."""
        known = aligned_zeros(*[self.arms] * 6, GUARD)
        state = DpKlucbState(*known, **self._adaptive(1).start()._asdict())
        state.shares[:] = 0.5 / self.arms
        if self.prior is not None:
            told = weighed(self.prior, 1.0 / float(self.epsilon))
            state.rewards[:], state.plays[:] = told.rounds - told.sums, told.rounds
            state.releases[:] = told.releases
            state.squared[:] = told.squares - MOST_SQUARE * told.rounds
        return state

    def welcome(self, state: DpKlucbState, first: int) -> None:
        """Know nothing of new arms; the learner behind lets them start level with the best."""
        self._adaptive(1).welcome(python_source(adaptive_part)(state), first)
        for arm in range(first, state.shares.size):
            state.guard[0].added += 1.0
            state.shares[arm] = 0.5 / (state.guard[0].added * (state.guard[0].added + 1.0))

    def chances(self, state: DpKlucbState) -> Floats | None:
        """Return the distribution of the next draw: there is one after an alarm."""
        return self._drawn_from(state) if state.guard[0].alarm > 0.0 else None

    def take_back(self, state: DpKlucbState, arm: int, importance: float) -> None:
        """Wait no more for the loss of a draw."""
        if importance == CHOSEN:
            state.waiting[arm] -= 1.0

    def report(self, state: DpKlucbState) -> Report:
        """Say what the guard has seen."""
        odds = float(self.false_alarm)
        return Report(guard=guard_report(state.guard[0], guard=bool(self.guard), false_alarm=odds))


@step
def _draw(params: DpKlucbParams, state: DpKlucbState, stream: Stream) -> tuple[int, float]:
    if state.guard[0].alarm > 0.0:
        return adaptive_draw(params.adaptive, adaptive_part(state), stream)
    arm = untried(state.plays, state.waiting)
    if arm < 0:
        logarithm = math.log(max(total_of(state.plays), 2.0))
        largest = -1.0
        for i in range(state.plays.size):
            plays = state.plays[i]
            if plays > 0.0:
                mean = min(max(state.rewards[i] / plays, 0.0), 1.0)
                calm = _calm(params, state, i)
                index = private_upper(mean, calm * logarithm / plays, calm * params.epsilon)
                # Many indices are 1 at first: the arm known least goes first.
                if index > largest or (index == largest and plays < state.plays[arm]):
                    arm, largest = i, index
    state.waiting[arm] += 1.0
    return arm, CHOSEN


@step
def _calm(params: DpKlucbParams, state: DpKlucbState, arm: int) -> float:
    """Return how much losses of an arm vary, as a part of what those that are 0 or 1 would.

    The divergence of two means is larger by as much.
    """
    plays = state.plays[arm]
    square = state.squared[arm] + MOST_SQUARE * plays
    known = Moments(plays - state.rewards[arm], square, plays, state.releases[arm])
    mean = min(max(known.total / plays, 0.0), 1.0)
    coin = max(mean * (1.0 - mean), CALMEST)
    varies = max(variance_of(known, 1.0 / params.epsilon, False), CALMEST)
    return float(min(varies / coin, 1.0))


@step
def _note_square(
    params: DpKlucbParams, state: DpKlucbState, arm: int, square: float, rounds: int
) -> None:
    if state.guard[0].alarm == 0.0:
        state.squared[arm] += (square - MOST_SQUARE) * rounds


@step
def _length(params: DpKlucbParams, state: DpKlucbState, arm: int) -> int:
    if state.guard[0].alarm > 0.0:
        return params.batch
    if state.plays[arm] == 0.0:
        return params.first
    rounds = max(math.ceil((params.growth - 1.0) * state.plays[arm]), 1.0)
    if params.guard:
        rounds = min(rounds, max(math.floor(SHARE * total_of(state.plays)), 1.0))
    return int(min(rounds, float(LONGEST)))


@step
def _update(params: DpKlucbParams, state: DpKlucbState, lesson: Lesson) -> None:
    if lesson.importance != CHOSEN:  # drawn by the adaptive learner, which plays after an alarm
        adaptive_update(params.adaptive, adaptive_part(state), lesson)
        return
    arm, _, loss, rounds = lesson
    state.waiting[arm] -= 1.0
    if state.guard[0].alarm > 0.0:  # asked for before the alarm, and of no use any more
        return
    if params.guard and state.releases[arm] > 0.0:
        old = state.rewards[arm] / state.plays[arm]
        known = state.plays[arm], state.releases[arm]
        odds = params.false_alarm * state.shares[arm]
        allowed = largest_difference(rounds, *known, params.epsilon, odds)
        note_test(state.guard[0], arm, total_of(state.plays), old, 1.0 - loss, allowed)
    state.rewards[arm] += (1.0 - loss) * rounds
    state.plays[arm] += rounds
    state.releases[arm] += 1.0


register(DpKlucbParams, _draw, _update, _length, _note_square)
