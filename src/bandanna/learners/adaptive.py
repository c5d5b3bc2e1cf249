"""Adaptive: follow the leader with a log barrier, predictions, a rate for each arm, and a memory.

Its regret follows how surprising losses are, not how large they are. After Wei and Luo (COLT 2018)
and Ito, Tsuchiya and Honda (COLT 2022), with four changes: a rate grows by the cost of a step that
is proved, not by an estimate of it; estimates that could do harm are cut at what the rate can
bear; predictions share a level; what is old is forgotten. Proofs and tuning:
``docs/theory/adaptive.md``.
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
from bandanna.learners.log_barrier import solve_log_barrier
from bandanna.learners.sampling import capped_inverse, pick
from bandanna.learners.steps import register
from bandanna.streams import Stream, uniform
from bandanna.types import InputError

Floats = NDArray[np.float64]

BEARABLE = 0.9
"""How far below its rate a surprise may push: at 1 the cost of a step would be infinite."""

ROOT, SLOPE = 0, 1
UPDATES, COST, ABOVE, RATES = 0, 1, 2, 3


class AdaptiveParams(NamedTuple):
    """Numbers for the compiled steps."""

    logarithm: float
    """Of how many losses count, at least 1; or 0 where that is not known and they are counted."""
    forget: float
    first_rate: float
    clamp: float
    level: float
    fresh: float


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
    totals: Floats
    """Updates; their cost; what was cut from losses above; rates, summed as the bound needs."""


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
        between changes tracks them; a third of all makes it robust at little cost.
    first_rate
        What every arm's rate starts from, above 0. Smaller is bolder.
    clamp
        Losses are cut to ``[-clamp, 1 + clamp]``; noise beyond that is not worth having.
    level
        How much of a surprise moves the predictions of all arms, from 0 to 1.
    fresh
        Least weight of the newest loss in its arm's prediction, from 0, the mean of all, to 1.

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
    name: ClassVar[str] = "adaptive"
    per_arm: ClassVar[tuple[str, ...]] = (
        *("losses", "predictions", "seen", "rates", "chances", "below"),
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

    def params(self) -> AdaptiveParams:
        """Return the numbers for the compiled steps."""
        forget = 0.0 if self.memory is None else 1.0 / self.memory
        known = min(self.losses or math.inf, self.memory or math.inf)
        logarithm = 0.0 if known == math.inf else max(math.log(known), 1.0)
        shape = self.first_rate, self.clamp, self.level, self.fresh
        return AdaptiveParams(logarithm, forget, *map(float, shape))

    def start(self) -> AdaptiveState:
        """Return the state before the first round: the uniform distribution."""
        state = AdaptiveState(*aligned_zeros(*[self.arms] * 6, 2, 4))
        state.predictions[:] = min(0.5, BEARABLE * self.first_rate)
        state.rates[:] = self.first_rate
        state.chances[:] = 1.0 / self.arms
        state.solution[SLOPE] = 1.0 / (self.arms * self.first_rate)
        state.solution[ROOT] = self.arms * self.first_rate
        return state


# --- drawing --------------------------------------------------------------------------------


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


# --- learning -------------------------------------------------------------------------------


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
    bearable = max(surprise, -BEARABLE * rate / exposed)
    cost = _cost(state, arm, bearable, exposed)
    state.below[arm] += (bearable - surprise + max(heard - loss, 0.0)) * importance
    state.totals[ABOVE] += max(loss - heard, 0.0)
    state.totals[COST] += cost
    _forget(params, state)
    state.losses[arm] += (1.0 - params.forget) * bearable * importance
    state.rates[arm] += cost / (params.logarithm or max(math.log(state.totals[UPDATES]), 1.0))
    _predict(params, state, arm, heard, surprise)


@step
def _forget(params: AdaptiveParams, state: AdaptiveState) -> None:
    """Add the predictions to the losses, let losses and rates fade, sum rates for the bound."""
    first, keep, fade = params.first_rate, 1.0 - params.forget, 1.0 - 0.5 * params.forget
    total = 0.0
    smallest = math.inf
    for i in range(state.losses.size):
        rate = state.rates[i]
        total += rate
        smallest = min(smallest, rate)
        state.losses[i] = keep * (state.losses[i] + state.predictions[i])
        state.rates[i] = first + (rate - first) * fade
    state.totals[RATES] += params.forget * (total - smallest)
    state.totals[UPDATES] += 1.0


@step
def _predict(
    params: AdaptiveParams, state: AdaptiveState, arm: int, heard: float, surprise: float
) -> None:
    """Move all predictions by a part of the surprise, and the arm's towards what was heard.

    None is higher than the arm's rate can bear, so that a loss of 0 is not cut.
    """
    predictions, common = state.predictions, params.level * surprise
    state.seen[arm] += 1.0
    weight = max(1.0 / (state.seen[arm] + 1.0), params.fresh)
    predictions[arm] += weight * (heard - predictions[arm] - common)
    for i in range(predictions.size):
        most = min(BEARABLE * state.rates[i], 1.0)
        predictions[i] = min(max(predictions[i] + common, 0.0), most)


@step
def _cost(state: AdaptiveState, arm: int, surprise: float, exposed: float) -> float:
    """Bound what a step may cost: the quadratic form, times what higher orders can add."""
    rate = float(state.rates[arm])
    quadratic = surprise * surprise * exposed / (2.0 * rate)
    if surprise <= 0.0:
        return quadratic * _higher_orders(-surprise * exposed / rate)
    alone = surprise - rate * math.log1p(surprise / rate)
    # How far the other arms are pushed, at most, when the whole distribution gives way.
    yielding = float(state.solution[SLOPE] * state.solution[ROOT])
    pushed = surprise * float(state.chances[arm]) / (rate * yielding)
    if pushed >= BEARABLE:
        return alone
    return min(alone, quadratic * _higher_orders(pushed))


@step
def _higher_orders(u: float) -> float:
    """Bound ``(-u - ln(1 - u)) / (u * u / 2)``, the sum of ``2 u**k / (k + 2)``, for u below 1."""
    return 1.0 + 2.0 / 3.0 * u + 0.5 * u * u / (1.0 - u)


register(AdaptiveParams, adaptive_draw, adaptive_update)
