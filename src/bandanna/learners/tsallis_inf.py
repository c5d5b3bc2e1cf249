"""Tsallis-INF (Zimmert, Seldin 2021), power 1/2, for losses in [0, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.streams import Stream
from bandanna._core.types import InputError
from bandanna.learners.base import CompiledLearner
from bandanna.learners.centring import root_baseline
from bandanna.learners.ftrl import (
    FTRL_PER_ARM,
    FtrlState,
    centre,
    draw_arm,
    level_with_best,
    solve_square,
    start_uniform,
)
from bandanna.learners.steps import register

ESTIMATORS = ("reduced-variance", "importance-weighted", "centred")

BASELINE_FROM = 16
"""First round with a baseline: from there on the learning rate 4 / sqrt(t) is at most 1."""

SHORTEST = 18
"""Least number of losses for a fixed rate: it is then at most 4/3, and its bound holds."""


class TsallisInfParams(NamedTuple):
    """Numbers for the compiled steps: 1 / eta_t is ``rate * sqrt(t)``."""

    rate: float
    reduced_variance: bool


class CentredTsallisParams(NamedTuple):
    """Numbers for the compiled steps: 2 / eta, or 0 where it is ``sqrt(t) / 2``."""

    fixed: float


@dataclass(frozen=True)
class TsallisInf(CompiledLearner):
    """Follow the leader regularised by the square roots of the probabilities.

    Needs no horizon and is optimal up to constants, whether losses are adversarial or random.
    Regret over T losses in [0, 1]: at most ``4 sqrt(K T) + 1`` importance weighted,
    ``2 sqrt(K T) + 4.07 K max(0, log(T / 15)) + 16`` with reduced variance, and centred
    ``2 sqrt(K T) - sqrt(T) + log(T) / 2 + 2``, or ``sqrt(2 T (K - sqrt(K))) + 4/3`` where the
    number of losses is known (``docs/theory``).

    Parameters
    ----------
    arms
        Number of arms K, at least 2.
    estimator
        ``"reduced-variance"`` subtracts a baseline of 1/2 from the losses of arms that are not
        too rare (probability at least a quarter of the squared learning rate, from round 16 on);
        ``"importance-weighted"`` is the plain one; ``"centred"`` has for every arm the baseline of
        ``bandanna.learners.centring``.
    losses
        When centred, how many losses there will be, if that is known: the learning rate is then
        fixed. At least 18.

    References
    ----------
    J. Zimmert, Y. Seldin. Tsallis-INF: an optimal algorithm for stochastic and adversarial
    bandits. JMLR 22(28), 2021.
    """

    arms: int
    estimator: str = "reduced-variance"
    losses: int | None = None
    name: ClassVar[str] = "tsallis-inf"
    per_arm: ClassVar[tuple[str, ...]] = FTRL_PER_ARM

    def __post_init__(self) -> None:
        checks.set_fields(self, arms=checks.arms(self.arms))
        if self.estimator not in ESTIMATORS:
            raise InputError(
                f"estimator must be one of {', '.join(ESTIMATORS)}; got {self.estimator!r}."
            )
        if self.losses is not None:
            checks.set_fields(self, losses=checks.whole("losses", self.losses, SHORTEST))
            if self.estimator != "centred":
                raise InputError(f"losses needs estimator='centred'; got {self.estimator!r}.")

    def params(self) -> TsallisInfParams | CentredTsallisParams:
        """Return the numbers for the compiled steps."""
        if self.estimator == "centred":
            # 2 / eta where eta**2 = 32 (1 - 1 / sqrt(K)) / n
            spread = 1.0 - 1.0 / math.sqrt(self.arms)
            return CentredTsallisParams(math.sqrt((self.losses or 0) / (8.0 * spread)))
        reduced = self.estimator == "reduced-variance"
        return TsallisInfParams(rate=0.5 if reduced else 1.0, reduced_variance=reduced)

    def start(self) -> FtrlState:
        """Return the state before the first round: the uniform distribution."""
        return start_uniform(self.arms)

    def welcome(self, state: NamedTuple, first: int) -> None:
        """Let new arms start level with the best."""
        assert isinstance(state, FtrlState)
        level_with_best(state.losses, first)


@step
def _draw(params: TsallisInfParams, state: FtrlState, stream: Stream) -> tuple[int, float]:
    c = params.rate * math.sqrt(state.updates[0] + 1.0)
    centre(state.losses)
    state.root[0] = solve_square(state.losses, state.chances, c, state.root[0])
    return draw_arm(state, stream)


@step
def _update(
    params: TsallisInfParams,
    state: FtrlState,
    arm: int,
    importance: float,
    loss: float,
    rounds: int,
) -> None:
    """Add the estimate ``B_i + 1[i = arm] (loss - B_i) / chance``, up to a common constant.

    The baseline B_i is 1/2 or 0. Adding 1/2 to every arm changes nothing, so instead of adding
    it to the common arms we subtract it from the rare ones: sums stay small over 10**8 rounds.
    With late feedback the baseline is judged by the newest distribution. That one does not
    depend on which arm this late draw gave, so the estimate is still unbiased.
    """
    t = state.updates[0] + 1
    baseline = 0.0
    if params.reduced_variance and t >= BASELINE_FROM:
        rare = 4.0 / t  # a quarter of the squared learning rate, 16 / t
        if state.chances[arm] >= rare:
            baseline = 0.5
        for i in range(state.losses.size):
            if state.chances[i] < rare:
                state.losses[i] -= 0.5
    state.losses[arm] += (loss - baseline) * importance
    state.updates[0] = t


@step
def _centred_draw(
    params: CentredTsallisParams, state: FtrlState, stream: Stream
) -> tuple[int, float]:
    c = params.fixed or 0.5 * math.sqrt(state.updates[0] + 1.0)
    centre(state.losses)
    state.root[0] = solve_square(state.losses, state.chances, c, state.root[0])
    return draw_arm(state, stream)


@step
def _centred_update(
    params: CentredTsallisParams,
    state: FtrlState,
    arm: int,
    importance: float,
    loss: float,
    rounds: int,
) -> None:
    """Add ``b_i - 1/2`` to every arm, and ``(loss - b) / chance`` to the one that was played."""
    c = params.fixed or 0.5 * math.sqrt(state.updates[0] + 1.0)
    state.losses[arm] += (loss - root_baseline(state.chances[arm], c)) * importance
    for i in range(state.losses.size):
        state.losses[i] += root_baseline(state.chances[i], c) - 0.5
    state.updates[0] += 1


register(CentredTsallisParams, _centred_draw, _centred_update)
register(TsallisInfParams, _draw, _update)
