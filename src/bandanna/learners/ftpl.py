"""FTPL with geometric resampling (the paper's Algorithm 5, corrected; Neu, Bartok 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.streams import Stream, laplace
from bandanna.learners.base import CompiledLearner
from bandanna.learners.ftrl import centre, level_with_best
from bandanna.learners.steps import Lesson, register


class FtplParams(NamedTuple):
    """Numbers for the compiled steps."""

    perturbation: float
    resamples: int


class FtplState(NamedTuple):
    """Estimated losses, up to a common constant."""

    losses: NDArray[np.float64]


@dataclass(frozen=True)
class Ftpl(CompiledLearner):
    """Follow the perturbed leader: play the arm whose loss plus fresh Laplace noise is smallest.

    Its probabilities have no formula. How often the draw must be repeated until the same arm
    comes up again estimates one over the probability; at most ``resamples`` repeats are made,
    and then their number stands (the paper's pseudocode says 0 there and ``argmax`` in the test:
    its proof needs what is done here).

    Parameters
    ----------
    arms
        Number of arms K, at least 2.
    learning_rate
        Above 0; the perturbation has scale ``1 / learning_rate``.
    resamples
        Most repeats, at least 1.

    References
    ----------
    G. Neu, G. Bartok. Importance weighting without importance weights. JMLR 17(154), 2016.
    """

    arms: int
    learning_rate: float
    resamples: int
    name: ClassVar[str] = "ftpl"
    per_arm: ClassVar[tuple[str, ...]] = ("losses",)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("learning_rate", self.learning_rate)
        checks.whole("resamples", self.resamples, at_least=1)

    def params(self) -> FtplParams:
        """Return the numbers for the compiled steps."""
        return FtplParams(1.0 / self.learning_rate, int(self.resamples))

    def start(self) -> FtplState:
        """Return the state before the first round."""
        return FtplState(losses=np.zeros(self.arms))

    def welcome(self, state: FtplState, first: int) -> None:
        """Let new arms start level with the best."""
        level_with_best(state.losses, first)


@step
def _leader(params: FtplParams, losses: NDArray[np.float64], stream: Stream) -> int:
    leader = 0
    smallest = losses[0] + laplace(stream, params.perturbation)
    for i in range(1, losses.size):
        perturbed = losses[i] + laplace(stream, params.perturbation)
        if perturbed < smallest:
            smallest = perturbed
            leader = i
    return leader


@step
def _leads(params: FtplParams, losses: NDArray[np.float64], arm: int, stream: Stream) -> bool:
    """Repeat the draw as far as needed to know whether the arm leads again."""
    own = losses[arm] + laplace(stream, params.perturbation)
    for i in range(losses.size):
        if i != arm and losses[i] + laplace(stream, params.perturbation) < own:
            return False
    return True


@step
def _draw(params: FtplParams, state: FtplState, stream: Stream) -> tuple[int, float]:
    centre(state.losses)
    arm = _leader(params, state.losses, stream)
    for repeat in range(1, params.resamples):
        if _leads(params, state.losses, arm, stream):
            return arm, float(repeat)
    return arm, float(params.resamples)


@step
def _update(params: FtplParams, state: FtplState, lesson: Lesson) -> None:
    state.losses[lesson.arm] += lesson.loss * lesson.importance


register(FtplParams, _draw, _update)
