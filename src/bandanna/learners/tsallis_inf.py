"""Tsallis-INF (Zimmert, Seldin 2021), power 1/2, for losses in [0, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bandanna._core import checks
from bandanna._core.compiled import kernel, step
from bandanna._core.streams import Stream
from bandanna._core.types import InputError
from bandanna.learners.base import State
from bandanna.learners.centring import baseline_of, root_baseline, with_baseline
from bandanna.learners.ftrl import FtrlLearner, FtrlState, centre, solve
from bandanna.learners.sampling import draw_arm
from bandanna.learners.steps import Lesson, register

ESTIMATORS = ("reduced-variance", "importance-weighted", "centred")
REDUCED, PLAIN, CENTRED = range(3)

BASELINE_FROM = 16
"""First draw with a baseline: from there on the learning rate 4 / sqrt(t) is at most 1."""

DRAWS = 1
"""Where a state's ``updates`` count draws; with feedback in order one more than updates."""

SHORTEST = 18
"""Least number of losses for a fixed rate: it is then at most 4/3, and its bound holds."""


class TsallisInfParams(NamedTuple):
    """Numbers for the compiled steps."""

    rate: float
    """In round t the chances are ``(c / (loss + root))**2`` with ``c = rate * sqrt(t)``."""
    fixed: float
    """What c is instead, or 0."""
    estimator: int


@dataclass(frozen=True)
class TsallisInf(FtrlLearner):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.estimator not in ESTIMATORS:
            raise InputError(
                f"estimator must be one of {', '.join(ESTIMATORS)}; got {self.estimator!r}."
            )
        if self.losses is not None:
            checks.set_fields(self, losses=checks.whole("losses", self.losses, SHORTEST))
            if self.estimator != "centred":
                raise InputError(f"losses needs estimator='centred'; got {self.estimator!r}.")

    def params(self) -> TsallisInfParams:
        """Return the numbers for the compiled steps."""
        # c is 2 / eta where eta**2 = 32 (1 - 1 / sqrt(K)) / n
        fixed = math.sqrt((self.losses or 0) / (8.0 * (1.0 - 1.0 / math.sqrt(self.arms))))
        estimator = ESTIMATORS.index(self.estimator)
        return TsallisInfParams(1.0 if estimator == PLAIN else 0.5, fixed, estimator)

    def take_back(self, state: State, arm: int, importance: float) -> None:
        """Forget a draw whose batch taught nothing: with late feedback, nearly."""
        _take_back_once(self.params(), state)


@step
def _scale(params: TsallisInfParams, state: FtrlState) -> float:
    """Return c in round t, one more than the number of updates."""
    return params.fixed or params.rate * math.sqrt(state.updates[0] + 1.0)


@step
def _draw(params: TsallisInfParams, state: FtrlState, stream: Stream) -> tuple[int, float]:
    """Draw an arm, and add every arm's baseline to its losses."""
    c = _scale(params, state)
    centre(state.losses)
    state.root[0] = solve(state.losses, state.chances, c, state.root[0], 2.0)
    arm, importance = draw_arm(state.chances, stream)
    if params.estimator == PLAIN:
        return arm, importance
    if params.estimator == REDUCED:
        state.updates[DRAWS] += 1
    _add_baselines(params, state, c, 1.0)
    return arm, with_baseline(importance, _baseline(params, state, c, arm))


@step
def _rare(state: FtrlState) -> float:
    """Return below which probability an arm is rare in the t-th draw; infinity up to some draw.

    That is a quarter of the squared learning rate, 16 / t.
    """
    t = float(state.updates[DRAWS])
    return 4.0 / t if t >= BASELINE_FROM else math.inf


@step
def _baseline(params: TsallisInfParams, state: FtrlState, c: float, arm: int) -> float:
    """Return an arm's baseline; that of reduced variance is 1/2 unless the arm is rare, then 0."""
    if params.estimator == CENTRED:
        return root_baseline(state.chances[arm], c)
    return 0.5 if state.chances[arm] >= _rare(state) else 0.0


@step
def _add_baselines(params: TsallisInfParams, state: FtrlState, c: float, sign: float) -> None:
    """Add every arm's baseline to its losses, or take it away again, less 1/2.

    Adding 1/2 to every arm changes nothing, and without it sums stay small over 10**8 rounds.
    """
    if params.estimator == CENTRED:
        for i in range(state.losses.size):
            state.losses[i] += sign * (root_baseline(state.chances[i], c) - 0.5)
        return
    rare = _rare(state)
    if rare < math.inf:
        for i in range(state.losses.size):
            if state.chances[i] < rare:
                state.losses[i] -= 0.5 * sign


@step
def _update(params: TsallisInfParams, state: FtrlState, lesson: Lesson) -> None:
    """Add ``(loss - b) / chance`` to the arm that was played; all baselines came with the draw."""
    baseline = 0.0
    if params.estimator != PLAIN:
        newest = _baseline(params, state, _scale(params, state), lesson.arm)
        baseline = baseline_of(lesson.importance, newest)
    state.losses[lesson.arm] += (lesson.loss - baseline) * lesson.importance
    state.updates[0] += 1


@kernel
def _take_back_once(params: TsallisInfParams, state: FtrlState) -> None:
    """Take back the newest draw, from Python."""
    if params.estimator != PLAIN:
        _add_baselines(params, state, _scale(params, state), -1.0)
    if params.estimator == REDUCED:
        state.updates[DRAWS] -= 1


register(TsallisInfParams, _draw, _update)
