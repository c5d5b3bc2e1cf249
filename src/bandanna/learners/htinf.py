"""HTINF: best-of-both-worlds bandits for heavy-tailed losses (Huang, Dai, Huang 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.streams import Stream
from bandanna._core.types import InputError
from bandanna.learners.ftrl import FtrlLearner, FtrlState, centre, solve
from bandanna.learners.sampling import draw_arm
from bandanna.learners.steps import Lesson, register


class HtinfParams(NamedTuple):
    """Numbers for the compiled steps."""

    alpha: float
    sigma: float
    skip: float


@dataclass(frozen=True)
class Htinf(FtrlLearner):
    """Follow the regularised leader, skipping losses that are too large for their probability.

    Needs no horizon. With ``E|loss| ** alpha <= sigma ** alpha`` and truncated non-negative
    losses, which noisy losses are, regret is at most
    ``30 sigma K ** (1 - 1/alpha) (T + 1) ** (1/alpha)``. Skipping is what survives noise: without
    it a negative noisy loss of a rare arm, divided by its probability, takes over.

    Parameters
    ----------
    arms
        Number of arms K, at least 2.
    alpha
        Which moment of the losses is bounded, above 1 and at most 2.
    sigma
        The bound on it, above 0. For losses in [0, 1] plus Laplace noise of scale ``lam`` and
        alpha 2, ``sqrt(1 + 2 lam ** 2)`` is enough; the paper takes ``sqrt(6)``.

    References
    ----------
    J. Huang, Y. Dai, L. Huang. Adaptive best-of-both-worlds algorithm for heavy-tailed
    multi-armed bandits. ICML 2022, Algorithm 1.
    """

    arms: int
    alpha: float = 2.0
    sigma: float = 1.0
    name: ClassVar[str] = "htinf"

    def __post_init__(self) -> None:
        super().__post_init__()
        if checks.within("alpha", self.alpha, 1.0, 2.0) == 1.0:
            raise InputError("alpha must be above 1 and at most 2; got 1.")
        checks.positive("sigma", self.sigma)

    def params(self) -> HtinfParams:
        """Return the numbers for the compiled steps."""
        return HtinfParams(float(self.alpha), float(self.sigma), skip_factor(self.alpha))


def skip_factor(alpha: float) -> float:
    """Return the constant Theta of the algorithm: larger losses are skipped."""
    first = 1.0 - math.pow(2.0, -(alpha - 1.0) / (2.0 * alpha - 1.0))
    if alpha == 2.0:  # the second branch tends to exp(-1/2)
        return min(first, math.exp(-0.5))
    return min(first, math.pow(2.0 - 2.0 / alpha, 1.0 / (2.0 - alpha)))


@step
def _inverse_rate(params: HtinfParams, state: FtrlState) -> float:
    """Return 1 / eta_t in round t, one more than the number of updates."""
    t = float(state.updates[0]) + 1.0
    if params.alpha == 2.0:
        return params.sigma * math.sqrt(t)
    return params.sigma * math.pow(t, 1.0 / params.alpha)


@step
def _draw(params: HtinfParams, state: FtrlState, stream: Stream) -> tuple[int, float]:
    c = _inverse_rate(params, state)
    centre(state.losses)
    power = params.alpha / (params.alpha - 1.0)
    state.root[0] = solve(state.losses, state.chances, c, state.root[0], power)
    return draw_arm(state.chances, stream)


@step
def _update(params: HtinfParams, state: FtrlState, lesson: Lesson) -> None:
    chance = 1.0 / lesson.importance
    shrunk = math.sqrt(chance) if params.alpha == 2.0 else chance ** (1.0 / params.alpha)
    if abs(lesson.loss) <= params.skip * _inverse_rate(params, state) * shrunk:
        state.losses[lesson.arm] += lesson.loss * lesson.importance
    state.updates[0] += 1


register(HtinfParams, _draw, _update)
