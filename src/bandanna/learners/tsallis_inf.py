"""Tsallis-INF (Zimmert, Seldin 2021), power 1/2, for losses in [0, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bandanna._core import checks
from bandanna._core.compiled import kernel, step
from bandanna._core.streams import Stream
from bandanna._core.types import InputError
from bandanna.learners.base import CompiledLearner
from bandanna.learners.centring import baseline_of, root_baseline, with_baseline
from bandanna.learners.ftrl import (
    FTRL_PER_ARM,
    FtrlState,
    centre,
    draw_arm,
    level_with_best,
    solve_square,
    start_uniform,
)
from bandanna.learners.steps import Lesson, register

ESTIMATORS = ("reduced-variance", "importance-weighted", "centred")

BASELINE_FROM = 16
"""First draw with a baseline: from there on the learning rate 4 / sqrt(t) is at most 1."""

DRAWS = 1
"""Where a state's ``updates`` count draws; with feedback in order one more than updates."""

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

    def take_back(self, state: NamedTuple, arm: int, importance: float) -> None:
        """Forget a draw whose batch taught nothing: with late feedback, nearly."""
        assert isinstance(state, FtrlState)
        params = self.params()
        if isinstance(params, TsallisInfParams):
            _take_back_once(params, state)
        else:
            _take_back_centred_once(params, state)

    def welcome(self, state: NamedTuple, first: int) -> None:
        """Let new arms start level with the best."""
        assert isinstance(state, FtrlState)
        level_with_best(state.losses, first)


@step
def _draw(params: TsallisInfParams, state: FtrlState, stream: Stream) -> tuple[int, float]:
    c = params.rate * math.sqrt(state.updates[0] + 1.0)
    centre(state.losses)
    state.root[0] = solve_square(state.losses, state.chances, c, state.root[0])
    arm, importance = draw_arm(state, stream)
    if not params.reduced_variance:
        return arm, importance
    state.updates[DRAWS] += 1
    _add_baselines(state, 1.0)
    return arm, with_baseline(importance, _baseline(state, arm))


@step
def _rare(state: FtrlState) -> float:
    """Return below which probability an arm is rare in the t-th draw; infinity up to some draw.

    That is a quarter of the squared learning rate, 16 / t.
    """
    t = float(state.updates[DRAWS])
    return 4.0 / t if t >= BASELINE_FROM else math.inf


@step
def _baseline(state: FtrlState, arm: int) -> float:
    """Return 1/2 for an arm that is not rare, and 0 for one that is."""
    return 0.5 if state.chances[arm] >= _rare(state) else 0.0


@step
def _add_baselines(state: FtrlState, sign: float) -> None:
    """Add every arm's baseline to its losses, or take it away again, up to a common constant.

    Adding 1/2 to every arm changes nothing, so instead of adding it to the common arms we subtract
    it from the rare ones: sums stay small over 10**8 rounds.
    """
    rare = _rare(state)
    if rare < math.inf:
        for i in range(state.losses.size):
            if state.chances[i] < rare:
                state.losses[i] -= 0.5 * sign


@step
def _update(params: TsallisInfParams, state: FtrlState, lesson: Lesson) -> None:
    """Add ``(loss - B) / chance`` to the arm that was played; all baselines came with the draw."""
    baseline = 0.0
    if params.reduced_variance:
        baseline = baseline_of(lesson.importance, _baseline(state, lesson.arm))
    state.losses[lesson.arm] += (lesson.loss - baseline) * lesson.importance
    state.updates[0] += 1


@step
def _centred_draw(
    params: CentredTsallisParams, state: FtrlState, stream: Stream
) -> tuple[int, float]:
    """Draw an arm, and add ``b_i - 1/2`` to every arm's loss."""
    c = params.fixed or 0.5 * math.sqrt(state.updates[0] + 1.0)
    centre(state.losses)
    state.root[0] = solve_square(state.losses, state.chances, c, state.root[0])
    arm, importance = draw_arm(state, stream)
    _add_centred(params, state, 1.0)
    return arm, with_baseline(importance, root_baseline(state.chances[arm], c))


@step
def _add_centred(params: CentredTsallisParams, state: FtrlState, sign: float) -> None:
    """Add what an estimate adds to all arms, or take it away again."""
    c = params.fixed or 0.5 * math.sqrt(state.updates[0] + 1.0)
    for i in range(state.losses.size):
        state.losses[i] += sign * (root_baseline(state.chances[i], c) - 0.5)


@step
def _centred_update(params: CentredTsallisParams, state: FtrlState, lesson: Lesson) -> None:
    """Add ``(loss - b) / chance`` to the arm that was played; all baselines came with the draw."""
    c = params.fixed or 0.5 * math.sqrt(state.updates[0] + 1.0)
    baseline = baseline_of(lesson.importance, root_baseline(state.chances[lesson.arm], c))
    state.losses[lesson.arm] += (lesson.loss - baseline) * lesson.importance
    state.updates[0] += 1


@kernel
def _take_back_once(params: TsallisInfParams, state: FtrlState) -> None:
    """Take back the newest draw, from Python."""
    if params.reduced_variance:
        _add_baselines(state, -1.0)
        state.updates[DRAWS] -= 1


@kernel
def _take_back_centred_once(params: CentredTsallisParams, state: FtrlState) -> None:
    """Take back the newest draw of centred Tsallis-INF, from Python."""
    _add_centred(params, state, -1.0)


register(CentredTsallisParams, _centred_draw, _centred_update)
register(TsallisInfParams, _draw, _update)
