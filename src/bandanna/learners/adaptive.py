"""Adaptive: follow the leader with a log barrier, predictions, a rate for each arm, and a memory.

Its regret follows how surprising losses are, not how large they are. After Wei and Luo (COLT 2018)
and Ito, Tsuchiya and Honda (COLT 2022), with four changes: a rate grows by the cost of a step that
is proved, not by an estimate of it; estimates that could do harm are cut at what the rate can
bear; predictions share a level; what is old is forgotten, faster when an arm has become worse.
Proofs: ``docs/theory/adaptive.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import once, python_source, step
from bandanna._core.streams import Stream
from bandanna._core.types import InputError
from bandanna.learners.base import CompiledLearner, Report, State, aligned_zeros
from bandanna.learners.centring import baseline_of, with_baseline
from bandanna.learners.exp3 import (
    CentredExp3Params,
    CentredExp3State,
    centred_draw,
    centred_update,
    take_back_once,
    welcome_centred,
)
from bandanna.learners.log_barrier import BEARABLE, higher_orders, solve_log_barrier, step_cost
from bandanna.learners.net import NetReport, rate_for, rest_paid, rest_regret, within_unit
from bandanna.learners.records import Record, record_of
from bandanna.learners.sampling import draw_arm
from bandanna.learners.steps import Lesson, register
from bandanna.learners.worse import FIRST_VARIANCE, fade_on_evidence, most_faded

Floats = NDArray[np.float64]

LEAST_EXPOSED = 1e-12


class SolverNumbers(Protocol):
    """How the last distribution was found."""

    root: float
    """Its normaliser."""
    slope: float
    """The derivative of its sum."""


class AdaptiveTotals(Protocol):
    """What is summed over all arms, and what the net does."""

    updates: float
    cost: float
    """That of all updates."""
    rates: float
    """Rates, summed as the bound needs."""
    variance: float
    """That of losses."""
    doubted: float
    """What was forgotten because an arm became worse."""
    bound: float
    """On the regret when the net looked last."""
    switched: float
    """After how many updates centred EXP3 took over; 0 before."""
    rate: float
    """Its learning rate; 0 before."""


SOLUTION, TOTALS = record_of(SolverNumbers), record_of(AdaptiveTotals)


class AdaptiveParams(NamedTuple):
    """Numbers for the compiled steps."""

    logarithm: float
    """Logarithm of the number of losses, at least 1; or 0 if unknown, and they are counted."""
    forget: float
    first_rate: float
    clamp: float
    level: float
    fresh: float
    doubts: float
    noise: float
    """Scale of the Laplace noise on a loss."""
    margin: float
    """How far predictions stay below what a rate can bear."""
    losses: float
    """How many there will be; 0 if that is not known."""
    budget: float
    """What the regret must not exceed; infinite where there is no net."""


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
    """For each arm, a bound on what was cut from its losses below, in expectation."""
    solution: Record[SolverNumbers]
    recent: Floats
    """For each arm, the mean of its last losses; ``usual`` goes back further."""
    usual: Floats
    totals: Record[AdaptiveTotals]
    rest: Floats
    """What centred EXP3 keeps: its updates and their cost."""


@step
def adaptive_part(state: State) -> AdaptiveState:
    """Return what an adaptive learner works on, of a state that has its fields among others."""
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


CUT, LEAST_SCALES = 0.7, 1.0
"""How much noise is cut below; but predictions keep at least so many scales of it."""


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
    noise
        Scale of the Laplace noise on each loss; 0 for losses in [0, 1].
    budget
        What its expected regret must not exceed, in losses, or None. When the bound on its regret
        so far comes too close, centred EXP3 plays the rest. Needs the number of losses.

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
    noise: float = 0.0
    budget: float | None = None
    name: ClassVar[str] = "adaptive"
    per_arm: ClassVar[tuple[str, ...]] = (
        *("losses", "predictions", "seen", "rates", "chances", "below", "recent", "usual"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.losses is not None:
            checks.set_fields(self, losses=checks.whole("losses", self.losses, at_least=1))
        if self.memory is not None and not checks.as_float(self.memory) >= 1.0:
            raise InputError(f"memory must be None or at least 1 loss; got {self.memory!r}.")
        checks.positive("first_rate", self.first_rate)
        checks.within("clamp", self.clamp, 0.0, 1e6)
        checks.within("level", self.level, 0.0, 1.0)
        checks.within("fresh", self.fresh, 0.0, 1.0)
        checks.within("doubts", self.doubts, 0.0, 100.0)
        checks.within("noise", self.noise, 0.0, 1e12)
        if self.budget is not None:
            checks.positive("budget", self.budget)
            if self.losses is None:
                raise InputError("a budget needs losses=, the number of losses to come.")

    def params(self) -> AdaptiveParams:
        """Return the numbers for the compiled steps."""
        forget = 0.0 if self.memory is None else 1.0 / self.memory
        known = min(self.losses or math.inf, self.memory or math.inf)
        logarithm = 0.0 if known == math.inf else max(math.log(known), 1.0)
        shape = self.first_rate, self.clamp, self.level, self.fresh, self.doubts, self.noise
        net = self.margin(), self.losses or 0.0, math.inf if self.budget is None else self.budget
        return AdaptiveParams(logarithm, forget, *map(float, (*shape, *net)))

    def margin(self) -> float:
        """Return how far predictions stay below what a rate can bear.

        So far that noise is cut, over the whole run, by no more than a part of what centred EXP3's
        bound is: ``n noise/2 exp(-margin / noise)`` is ``CUT sqrt(n K ln(K) / 2)``.
        """
        if self.noise == 0.0:
            return 0.0
        allowed = 2.0 * CUT * math.sqrt(0.5 * self.arms * math.log(self.arms))
        scales = math.log(max(math.sqrt(self.losses or 1.0) * self.noise / allowed, 1.0))
        return self.noise * max(scales, LEAST_SCALES)

    def start(self) -> AdaptiveState:
        """Return the state before the first round: the uniform distribution."""
        arms = self.arms
        state = AdaptiveState(*aligned_zeros(*[arms] * 6, SOLUTION, arms, arms, TOTALS, 2))
        highest = python_source(highest_prediction)(self.first_rate, self.margin())
        state.predictions[:] = min(0.5, highest)
        state.rates[:] = self.first_rate
        state.chances[:] = 1.0 / self.arms
        state.totals[0].variance = FIRST_VARIANCE
        state.solution[0].slope = 1.0 / (self.arms * self.first_rate)
        state.solution[0].root = self.arms * self.first_rate
        if self.budget is not None:
            watch_once(self.params(), state)
            if state.totals[0].rate:  # the budget is too small for anything else
                state.totals[0].bound = 0.0
        return state

    def report(self, state: AdaptiveState) -> Report:
        """Bound the regret by what was met, and say whether the net was needed.

        In expectation over runs the regret against any arm is at most the mean of the bound, when
        losses came back in order and ``noise`` is theirs.
        """
        met = regret_so_far_once(self.params(), state) if state.totals[0].updates else 0.0
        if self.budget is None:
            return Report(regret=met)
        net = NetReport(budget=self.budget, switched=bool(state.totals[0].rate))
        if net["switched"]:
            net["after"] = int(state.totals[0].switched)
        return Report(regret=met, net=net)

    def take_back(self, state: AdaptiveState, arm: int, importance: float) -> None:
        """Forget a draw whose batch taught nothing: with late feedback, nearly."""
        if not state.totals[0].rate:
            state.losses[:] -= state.predictions
            return
        take_back_once(*python_source(_rest)(state))

    def with_arms(self, state: State, kept: list[int], added: int) -> tuple[Self, State]:
        """Return a learner for other arms: its budget was for those that there were."""
        learner, fresh = super().with_arms(state, kept, added)
        return replace(learner, budget=None), fresh

    def welcome(self, state: AdaptiveState, first: int) -> None:
        """Let new arms start level with the best, by losses and predictions together."""
        if state.totals[0].rate:  # centred EXP3 plays
            welcome_centred(*python_source(_rest)(state), first)
            return
        best = (state.losses + state.predictions)[:first].min()
        state.losses[first:] = best - state.predictions[first:]


@step
def _rest(state: AdaptiveState) -> tuple[CentredExp3Params, CentredExp3State]:
    """Return what centred EXP3 plays the rest with, once the net needs it."""
    known = CentredExp3State(state.losses, state.chances, state.rest)
    return CentredExp3Params(state.totals[0].rate, 0.0), known


# --- drawing --------------------------------------------------------------------------------


@step
def adaptive_draw(
    params: AdaptiveParams, state: AdaptiveState, stream: Stream
) -> tuple[int, float]:
    """Draw an arm, and add to every arm's losses what is predicted.

    That part of the estimate does not depend on the loss. Added here it has the predictions of the
    draw, however late the loss comes; the importance carries the one of the arm drawn.
    """
    if state.totals[0].rate > 0.0:
        exp3, rest = _rest(state)
        return centred_draw(exp3, rest, stream)
    root, slope = solve_log_barrier(
        state.losses, state.predictions, state.rates, state.chances, state.solution[0].root
    )
    state.solution[0].root = root
    state.solution[0].slope = slope
    arm, importance = draw_arm(state.chances, stream)
    for i in range(state.losses.size):
        state.losses[i] += state.predictions[i]
    return arm, with_baseline(importance, state.predictions[arm])


# --- learning -------------------------------------------------------------------------------


@step
def adaptive_update(params: AdaptiveParams, state: AdaptiveState, lesson: Lesson) -> None:
    """Learn from a loss, and see whether the net is needed."""
    if state.totals[0].rate > 0.0:
        state.totals[0].updates += 1.0
        exp3, rest = _rest(state)
        loss = within_unit(lesson.loss, params.noise)
        centred_update(exp3, rest, Lesson(lesson.arm, lesson.importance, loss, lesson.rounds))
        return
    _learn(params, state, lesson)
    if params.budget < math.inf:
        watch_net(params, state)


@step
def _learn(params: AdaptiveParams, state: AdaptiveState, lesson: Lesson) -> None:
    """Add ``(loss - m) / chance`` to the losses of the arm played; raise its rate by the cost.

    All predictions came with the draw. With late feedback the rates, by which surprises that are
    too large are cut, are the newest.
    """
    arm, importance, loss, _ = lesson
    chance, rate = state.chances[arm], state.rates[arm]
    exposed = max(1.0 - chance * chance / (rate * state.solution[0].slope), LEAST_EXPOSED)
    heard = min(max(loss, -params.clamp), 1.0 + params.clamp)
    surprise = heard - state.predictions[arm]
    bearable = heard - baseline_of(importance, state.predictions[arm])
    if bearable * exposed < -BEARABLE * rate:
        bearable = -BEARABLE * rate / exposed
    yielding = state.solution[0].slope * state.solution[0].root
    cost = step_cost(bearable, rate, exposed, chance, yielding)
    state.totals[0].cost += cost
    if params.noise > 0.0:
        _sum_cuts(params, state)
    forget = _to_forget(params, state, arm, heard)
    growth = cost / (params.logarithm or max(math.log(state.totals[0].updates), 1.0))
    _forget(params, state, forget, growth)
    state.losses[arm] += (1.0 - forget) * bearable * importance
    state.rates[arm] += growth
    _predict(params, state, arm, heard, surprise)


@step
def _sum_cuts(params: AdaptiveParams, state: AdaptiveState) -> None:
    """Add for each arm what is cut from its losses below, in expectation, were it played.

    A loss is at least 0, so that only noise reaches the cut at ``-least``: by at most
    ``noise / 2 exp(-least / noise)``.
    """
    half, slope = 0.5 * params.noise, state.solution[0].slope
    at_clamp = half * math.exp(-params.clamp / params.noise)
    for i in range(state.rates.size):
        chance, rate, least = state.chances[i], state.rates[i], BEARABLE * state.rates[i]
        if least - state.predictions[i] < params.clamp:
            least /= max(1.0 - chance * chance / (rate * slope), LEAST_EXPOSED)
            least -= state.predictions[i]
            if least < params.clamp:
                state.below[i] += half * math.exp(-least / params.noise)
                continue
        state.below[i] += at_clamp


@step
def _to_forget(params: AdaptiveParams, state: AdaptiveState, arm: int, heard: float) -> float:
    """Return how much of what was learned fades in this step."""
    updates = state.totals[0].updates + 1.0
    state.totals[0].updates = updates
    state.seen[arm] += 1.0
    if params.doubts == 0.0:
        return params.forget
    count = min(updates, 1.0 / params.forget) if params.forget > 0.0 else updates
    more, variance = fade_on_evidence(
        state.recent, state.usual, state.totals[0].variance, arm, heard, state.seen[arm], count
    )
    state.totals[0].variance = variance
    if more > 0.0:
        more = max(min(more, params.doubts * math.log(updates) - state.totals[0].doubted), 0.0)
        state.totals[0].doubted += more
    return min(params.forget + more, 1.0)


@step
def _forget(params: AdaptiveParams, state: AdaptiveState, forget: float, growth: float) -> None:
    """Let losses and rates fade, and sum rates for the bound.

    ``growth`` is what the rate of the arm played is about to grow by.
    """
    first, keep, fade = params.first_rate, 1.0 - forget, 1.0 - 0.5 * forget
    rates, _ = _other_rates(state)
    state.totals[0].rates += forget * (rates + growth)
    for i in range(state.losses.size):
        state.losses[i] *= keep
        state.rates[i] = first + (state.rates[i] - first) * fade


@step
def _other_rates(state: AdaptiveState) -> tuple[float, float]:
    """Return the sum of all rates but the smallest, and that one."""
    total = 0.0
    smallest = math.inf
    for i in range(state.rates.size):
        total += state.rates[i]
        smallest = min(smallest, state.rates[i])
    return total - smallest, smallest


@step
def _predict(
    params: AdaptiveParams, state: AdaptiveState, arm: int, heard: float, surprise: float
) -> None:
    """Move all predictions by a part of the surprise, and the arm's towards what was heard.

    None is higher than the arm's rate can bear, so that a loss of 0 is not cut, even with some
    noise on it.
    """
    predictions, common = state.predictions, params.level * surprise
    weight = max(1.0 / (state.seen[arm] + 1.0), params.fresh)
    predictions[arm] += weight * (heard - predictions[arm] - common)
    for i in range(predictions.size):
        most = highest_prediction(state.rates[i], params.margin)
        predictions[i] = max(min(predictions[i] + common, most), 0.0)


@step
def highest_prediction(rate: float, margin: float) -> float:
    """Return the highest prediction that a rate can bear, with room for noise."""
    return max(min(BEARABLE * rate - margin, 1.0), 0.0)


# --- the net --------------------------------------------------------------------------------


@step
def watch_net(params: AdaptiveParams, state: AdaptiveState) -> None:
    """Let centred EXP3 play the rest if one more step might take the bound past the budget."""
    arms, totals = state.rates.size, state.totals[0]
    totals.bound = regret_so_far(params, state)
    rate = rate_for(max(params.losses - totals.updates, 1.0), arms)
    rest = rest_regret(rate, arms, params.noise) + 1.0  # and the last batch, if it is cut short
    if totals.bound + _most_in_a_step(params, state) + rest > params.budget:
        totals.switched = totals.updates
        totals.rate = rate
        for i in range(arms):
            state.losses[i] = 0.0
            state.chances[i] = 1.0 / arms


@step
def regret_so_far(params: AdaptiveParams, state: AdaptiveState) -> float:
    """Bound the regret so far, in losses: in expectation, if they came back in order."""
    arms, totals = state.rates.size, state.totals[0]
    if totals.rate > 0.0:
        rest = totals.rate, arms, params.noise, state.rest[0], state.rest[1]
        return float(totals.bound) + rest_paid(*rest)
    rates, _ = _other_rates(state)
    below = 0.0
    for i in range(arms):
        below = max(below, state.below[i])
    above = 0.5 * params.noise * math.exp(-params.clamp / params.noise) if params.noise else 0.0
    penalty = _log_choices(params, state) * (rates + totals.rates)
    penalty -= arms * params.first_rate * math.log(arms)
    met: float = penalty + totals.cost + below + totals.updates * above + 1.0
    return met


@step
def _log_choices(params: AdaptiveParams, state: AdaptiveState) -> float:
    """Return ``ln(n K)`` and what the compared arm's own rate adds to it."""
    losses = max(params.losses or state.totals[0].updates, 2.0)
    return math.log(losses * state.rates.size) + 1.0 / (losses - 1.0)


@step
def _most_in_a_step(params: AdaptiveParams, state: AdaptiveState) -> float:
    """Return what the next step can add to the bound at most.

    As if one arm had the smallest rate, the highest and the lowest prediction.
    """
    rates, smallest = _other_rates(state)
    highest, lowest = 0.0, 1.0
    for i in range(state.rates.size):
        highest = max(highest, state.predictions[i])
        lowest = min(lowest, state.predictions[i])
    down, up = params.clamp + highest, 1.0 + params.clamp - lowest
    pushed = min(down / smallest, BEARABLE)
    dearest = max(0.5 * down * pushed * higher_orders(pushed), min(0.5 * up * up / smallest, up))
    forget = params.forget
    if params.doubts > 0.0:
        updates = state.totals[0].updates
        count = min(updates, 1.0 / params.forget) if params.forget > 0.0 else updates
        left = params.doubts * math.log(updates + 1.0) - state.totals[0].doubted
        forget += max(min(most_faded(count), left), 0.0)
    growth = dearest / params.logarithm
    faded = forget * (rates + growth)
    return _log_choices(params, state) * (growth + faded) + dearest + params.noise


regret_so_far_once, watch_once = once(regret_so_far), once(watch_net)
register(AdaptiveParams, adaptive_draw, adaptive_update)
