"""Adaptive: follow the leader with a log barrier, predictions, a rate for each arm, and a memory.

Its regret follows how surprising losses are, not how large they are. After Wei and Luo (COLT 2018)
and Ito, Tsuchiya and Honda (COLT 2022), with four changes: a rate grows by the cost of a step that
is proved, not by an estimate of it; estimates that could do harm are cut at what the rate can
bear; predictions share a level; what is old is forgotten, faster when an arm has become worse.
Proofs and tuning: ``docs/theory/adaptive.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np

from bandanna._core import checks
from bandanna._core.compiled import python_source
from bandanna._core.types import InputError
from bandanna.learners.adaptive_steps import (
    BOUND,
    RATE,
    ROOT,
    SLOPE,
    SWITCHED,
    TOTALS,
    UPDATES,
    VARIANCE,
    AdaptiveParams,
    AdaptiveState,
    highest_prediction,
    regret_so_far_once,
    watch_once,
)
from bandanna.learners.base import CompiledLearner, Report, aligned_zeros
from bandanna.learners.centred_exp3 import (
    CentredExp3Params,
    CentredExp3State,
    take_back_once,
)
from bandanna.learners.net import NetReport
from bandanna.learners.worse import FIRST_VARIANCE

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
        checks.set_fields(self, arms=checks.arms(self.arms))
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
        state = AdaptiveState(*aligned_zeros(*[self.arms] * 6, 2, *[self.arms] * 2, TOTALS, 2))
        highest = python_source(highest_prediction)(self.first_rate, self.margin())
        state.predictions[:] = min(0.5, highest)
        state.rates[:] = self.first_rate
        state.chances[:] = 1.0 / self.arms
        state.totals[VARIANCE] = FIRST_VARIANCE
        state.solution[SLOPE] = 1.0 / (self.arms * self.first_rate)
        state.solution[ROOT] = self.arms * self.first_rate
        if self.budget is not None:
            watch_once(self.params(), state)
            if state.totals[RATE]:  # the budget is too small for anything else
                state.totals[BOUND] = 0.0
        return state

    def report(self, state: NamedTuple) -> Report:
        """Bound the regret by what was met, and say whether the net was needed.

        In expectation over runs the regret against any arm is at most the mean of the bound, when
        losses came back in order and ``noise`` is theirs.
        """
        assert isinstance(state, AdaptiveState)
        met = regret_so_far_once(self.params(), state) if state.totals[UPDATES] else 0.0
        if self.budget is None:
            return Report(regret=met)
        net = NetReport(budget=self.budget, switched=bool(state.totals[RATE]))
        if net["switched"]:
            net["after"] = int(state.totals[SWITCHED])
        return Report(regret=met, net=net)

    def take_back(self, state: NamedTuple, arm: int, importance: float) -> None:
        """Forget a draw whose batch taught nothing: with late feedback, nearly."""
        assert isinstance(state, AdaptiveState)
        if not state.totals[RATE]:
            state.losses[:] -= state.predictions
            return
        exp3 = CentredExp3Params(float(state.totals[RATE]), 0.0)
        take_back_once(exp3, CentredExp3State(state.losses, state.chances, state.rest))

    def with_arms(self, state: NamedTuple, kept: list[int], added: int) -> tuple[Self, NamedTuple]:
        """Return a learner for other arms: its budget was for those that there were."""
        learner, fresh = super().with_arms(state, kept, added)
        return replace(learner, budget=None), fresh

    def welcome(self, state: NamedTuple, first: int) -> None:
        """Let new arms start level with the best, by losses and predictions together."""
        assert isinstance(state, AdaptiveState)
        if state.totals[RATE]:  # centred EXP3 plays
            state.losses[first:] = state.losses[:first].min()
            weights = np.exp(state.totals[RATE] * (state.losses.min() - state.losses))
            state.chances[:] = weights / weights.sum()
            return
        best = (state.losses + state.predictions)[:first].min()
        state.losses[first:] = best - state.predictions[first:]
