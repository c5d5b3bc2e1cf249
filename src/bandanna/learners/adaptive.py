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

from bandanna._core import checks
from bandanna._core.types import InputError
from bandanna.learners.adaptive_steps import (
    ROOT,
    SLOPE,
    VARIANCE,
    AdaptiveParams,
    AdaptiveState,
)
from bandanna.learners.base import CompiledLearner, Report, aligned_zeros
from bandanna.learners.log_barrier import BEARABLE
from bandanna.learners.worse import FIRST_VARIANCE


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

    def report(self, state: NamedTuple) -> Report:
        """Bound the regret by what was met.

        In expectation over runs the regret against any arm is at most the mean of this, when losses
        came back in order: ``ln(n K) (rates + faded ones) + cost + what was cut off + 1``.
        """
        assert isinstance(state, AdaptiveState)
        updates, cost, above, faded = state.totals[:4].tolist()
        if updates < 1.0:
            return Report(regret=0.0)
        rates = state.rates.tolist()
        penalty = math.log(updates * len(rates)) * (sum(rates) - min(rates) + faded)
        return Report(regret=penalty + cost + float(state.below.max()) + above + 1.0)

    def welcome(self, state: NamedTuple, first: int) -> None:
        """Let new arms start level with the best, by losses and predictions together."""
        assert isinstance(state, AdaptiveState)
        best = (state.losses + state.predictions)[:first].min()
        state.losses[first:] = best - state.predictions[first:]
