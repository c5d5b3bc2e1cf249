"""Adaptive: follow the leader with a log barrier, predictions, a rate for each arm, and a memory.

Its regret follows how surprising losses are, not how large they are. After Wei and Luo (COLT 2018)
and Ito, Tsuchiya and Honda (COLT 2022), with four changes: a rate grows by the cost of a step that
is proved, not by an estimate of it; estimates that could do harm are cut at what the rate can
bear; predictions share a level; what is old is forgotten, faster when an arm has become worse.
Proofs and tuning: ``docs/theory/adaptive.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna import checks
from bandanna.compiled import step
from bandanna.learners.base import CompiledLearner, aligned_zeros
from bandanna.learners.log_barrier import BEARABLE, solve_log_barrier, step_cost
from bandanna.learners.sampling import capped_inverse, pick
from bandanna.learners.steps import register
from bandanna.learners.worse import FIRST_VARIANCE, fade_on_evidence
from bandanna.streams import Stream, uniform
from bandanna.types import InputError

Floats = NDArray[np.float64]

ROOT, SLOPE = 0, 1
UPDATES, COST, ABOVE, RATES, VARIANCE, DOUBTED = range(6)


class AdaptiveParams(NamedTuple):
    """Numbers for the compiled steps."""

    logarithm: float
    """Of how many losses count, at least 1; or 0 where that is not known and they are counted."""
    forget: float
    first_rate: float
    clamp: float
    level: float
    fresh: float
    doubts: float


class AdaptiveState(NamedTuple):
    """What has been learned of each arm, and what it cost."""

    losses: Floats
    """Estimated losses, discounted, up to a common constant."""
    predictions: Floats
    seen: Floats
    """How many losses of each arm its prediction rests on."""
    rates: Floats
    chances: Floats
    """The distribution last drawn from."""
    below: Floats
    """For each arm, what was cut from its losses below, divided by the probability."""
    solution: Floats
    """Of the last distribution: the normaliser, and how fast its sum changes with it."""
    recent: Floats
    """For each arm, the mean of its last losses; ``usual`` goes back further."""
    usual: Floats
    totals: Floats
    """Updates; their cost; what was cut from losses above; rates, summed as the bound needs;
    their variance; what was forgotten because an arm became worse."""


@dataclass(frozen=True)
class Adaptive(CompiledLearner):
    """Log-barrier learner for losses of mean in [0, 1] with noise on them.

    Parameters
    ----------
    arms
        Number of arms K, at least 2.
    losses
        How many losses it will see, if that is known.
    memory
        How many losses it remembers: older ones fade. None is all of them. A third of what lies
        between changes tracks them; as many as there are makes it robust at little cost.
    first_rate
        What every arm's rate starts from, above 0. Smaller is bolder.
    clamp
        Losses are cut to ``[-clamp, 1 + clamp]``; noise beyond that is not worth having.
    level
        How much of a surprise moves the predictions of all arms, from 0 to 1.
    fresh
        Least weight of the newest loss in its arm's prediction, from 0, the mean of all, to 1.
    doubts
        How much it forgets because an arm became worse: after n losses, all in all, old ones
        fade by at most ``n ** -doubts``. At 0 it does not look.

    References
    ----------
    C.-Y. Wei, H. Luo. More adaptive algorithms for adversarial bandits. COLT 2018.
    S. Ito, T. Tsuchiya, J. Honda. Adversarially robust multi-armed bandit algorithm with
    variance-dependent regret bounds. COLT 2022.
    """

    arms: int
    losses: int | None = None
    memory: float | None = None
    first_rate: float = 0.5
    clamp: float = 0.5
    level: float = 0.1
    fresh: float = 0.0
    doubts: float = 0.3
    name: ClassVar[str] = "adaptive"
    per_arm: ClassVar[tuple[str, ...]] = (
        *("losses", "predictions", "seen", "rates", "chances", "below", "recent", "usual"),
    )

    def __post_init__(self) -> None:
        checks.settle(self, arms=checks.arms(self.arms))
        if self.losses is not None:
            checks.settle(self, losses=checks.whole("losses", self.losses, at_least=1))
        if self.memory is not None and not checks.as_float(self.memory) >= 1.0:
            raise InputError(f"memory must be None or at least 1 loss; got {self.memory!r}.")
        checks.positive("first_rate", self.first_rate)
        checks.within("clamp", self.clamp, 0.0, 1e6)
        checks.within("level", self.level, 0.0, 1.0)
        checks.within("fresh", self.fresh, 0.0, 1.0)
        checks.within("doubts", self.doubts, 0.0, 100.0)

    def params(self) -> AdaptiveParams:
        """Return the numbers for the compiled steps."""
        forget = 0.0 if self.memory is None else 1.0 / self.memory
        known = min(self.losses or math.inf, self.memory or math.inf)
        logarithm = 0.0 if known == math.inf else max(math.log(known), 1.0)
        shape = self.first_rate, self.clamp, self.level, self.fresh, self.doubts
        return AdaptiveParams(logarithm, forget, *map(float, shape))

    def start(self) -> AdaptiveState:
        """Return the state before the first round: the uniform distribution."""
        state = AdaptiveState(*aligned_zeros(*[self.arms] * 6, 2, *[self.arms] * 2, 6))
        state.predictions[:] = min(0.5, BEARABLE * self.first_rate)
        state.rates[:] = self.first_rate
        state.chances[:] = 1.0 / self.arms
        state.totals[VARIANCE] = FIRST_VARIANCE
        state.solution[SLOPE] = 1.0 / (self.arms * self.first_rate)
        state.solution[ROOT] = self.arms * self.first_rate
        return state

    def welcome(self, state: NamedTuple, first: int) -> None:
        """Let new arms start level with the best, by losses and predictions together."""
        assert isinstance(state, AdaptiveState)
        best = (state.losses + state.predictions)[:first].min()
        state.losses[first:] = best - state.predictions[first:]


@step
def adaptive_draw(
    params: AdaptiveParams, state: AdaptiveState, stream: Stream
) -> tuple[int, float]:
    """Draw an arm."""
    root, slope = solve_log_barrier(
        state.losses, state.predictions, state.rates, state.chances, state.solution[ROOT]
    )
    state.solution[ROOT] = root
    state.solution[SLOPE] = slope
    arm = pick(state.chances, 0, state.chances.size, uniform(stream))
    return arm, capped_inverse(state.chances[arm])


@step
def adaptive_update(
    params: AdaptiveParams, state: AdaptiveState, arm: int, importance: float, loss: float
) -> None:
    """Add the estimate ``m_i + 1[i = arm] (loss - m) / chance``; raise the arm's rate by its cost.

    With late feedback predictions and rates are the newest. They do not depend on which arm this
    late draw gave, so the estimate is as unbiased as it would have been.
    """
    chance, rate = state.chances[arm], state.rates[arm]
    exposed = max(1.0 - chance * chance / (rate * state.solution[SLOPE]), 1e-12)
    heard = min(max(loss, -params.clamp), 1.0 + params.clamp)
    surprise = heard - state.predictions[arm]
    bearable = surprise
    if surprise * exposed < -BEARABLE * rate:
        bearable = -BEARABLE * rate / exposed
    yielding = state.solution[SLOPE] * state.solution[ROOT]
    cost = step_cost(bearable, rate, exposed, chance, yielding)
    state.below[arm] += (bearable - surprise + max(heard - loss, 0.0)) * importance
    state.totals[ABOVE] += max(loss - heard, 0.0)
    state.totals[COST] += cost
    forget = _to_forget(params, state, arm, heard)
    _forget(params, state, forget)
    state.losses[arm] += (1.0 - forget) * bearable * importance
    state.rates[arm] += cost / (params.logarithm or max(math.log(state.totals[UPDATES]), 1.0))
    _predict(params, state, arm, heard, surprise)


@step
def _to_forget(params: AdaptiveParams, state: AdaptiveState, arm: int, heard: float) -> float:
    """Return how much of what was learned fades in this step."""
    updates = state.totals[UPDATES] + 1.0
    state.totals[UPDATES] = updates
    state.seen[arm] += 1.0
    if params.doubts == 0.0:
        return params.forget
    count = min(updates, 1.0 / params.forget) if params.forget > 0.0 else updates
    more, variance = fade_on_evidence(
        state.recent, state.usual, state.totals[VARIANCE], arm, heard, state.seen[arm], count
    )
    state.totals[VARIANCE] = variance
    if more > 0.0:
        more = max(min(more, params.doubts * math.log(updates) - state.totals[DOUBTED]), 0.0)
        state.totals[DOUBTED] += more
    return min(params.forget + more, 1.0)


@step
def _forget(params: AdaptiveParams, state: AdaptiveState, forget: float) -> None:
    """Add the predictions to the losses, let losses and rates fade, sum rates for the bound."""
    first, keep, fade = params.first_rate, 1.0 - forget, 1.0 - 0.5 * forget
    total = 0.0
    smallest = math.inf
    for i in range(state.losses.size):
        rate = state.rates[i]
        total += rate
        smallest = min(smallest, rate)
        state.losses[i] = keep * (state.losses[i] + state.predictions[i])
        state.rates[i] = first + (rate - first) * fade
    state.totals[RATES] += forget * (total - smallest)


@step
def _predict(
    params: AdaptiveParams, state: AdaptiveState, arm: int, heard: float, surprise: float
) -> None:
    """Move all predictions by a part of the surprise, and the arm's towards what was heard.

    None is higher than the arm's rate can bear, so that a loss of 0 is not cut.
    """
    predictions, common = state.predictions, params.level * surprise
    weight = max(1.0 / (state.seen[arm] + 1.0), params.fresh)
    predictions[arm] += weight * (heard - predictions[arm] - common)
    for i in range(predictions.size):
        most = min(BEARABLE * state.rates[i], 1.0)
        predictions[i] = min(max(predictions[i] + common, 0.0), most)


register(AdaptiveParams, adaptive_draw, adaptive_update)
