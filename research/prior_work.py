"""Prior work that is only compared with: DP-EXP3-Lap (Tossou, Dimitrakakis 2017).

Importing this module makes ``dp-exp3-lap`` an algorithm and ``clipped-exp3`` a learner by name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.streams import Stream
from bandanna.algorithms import Algorithm
from bandanna.algorithms import register as register_algorithm
from bandanna.learners import add
from bandanna.learners.base import CompiledLearner
from bandanna.learners.exp3 import (
    Exp3,
    Exp3Params,
    Exp3State,
    block_bits,
    exp3_draw,
    exp3_update,
    mixed_chances,
    start_exp3,
)
from bandanna.learners.steps import Lesson, register
from bandanna.spec import Problem
from bandanna.theory.tuning import Tuning, learner, release, require_horizon


class ClippedExp3Params(NamedTuple):
    """Numbers for the compiled steps."""

    exp3: Exp3Params
    bound: float


@dataclass(frozen=True)
class ClippedExp3(CompiledLearner):
    """EXP3 for gains, which ignores noisy gains that are too large to be believed.

    A noisy loss is turned into a gain (1 minus it). A gain outside ``[-bound, bound + 1]`` is
    discarded; the others are rescaled to [0, 1] and given to EXP3 with
    ``learning_rate = mixing / K``.

    Parameters
    ----------
    arms
        Number of arms K, at least 2.
    mixing
        Share of uniform draws, above 0 and at most 1.
    bound
        Above 0; DP-EXP3-Lap takes ``log(T) / epsilon``.

    References
    ----------
    A. Tossou, C. Dimitrakakis. Achieving privacy in the adversarial multi-armed bandit. AAAI 2017.
    """

    arms: int
    mixing: float
    bound: float
    name: ClassVar[str] = "clipped-exp3"

    def __post_init__(self) -> None:
        checks.positive("mixing", self.mixing)
        checks.positive("bound", self.bound)
        Exp3(self.arms, learning_rate=self.mixing / self.arms, mixing=self.mixing)  # checks both

    def params(self) -> ClippedExp3Params:
        """Return the numbers for the compiled steps."""
        rates = float(self.mixing / self.arms), float(self.mixing)
        return ClippedExp3Params(Exp3Params(*rates, block_bits(self.arms)), float(self.bound))

    def start(self) -> Exp3State:
        """Return the state before the first round."""
        return start_exp3(self.arms)

    def chances(self, state: NamedTuple) -> NDArray[np.float64] | None:
        """Return the distribution of the next draw."""
        assert isinstance(state, Exp3State)
        return mixed_chances(state, self.mixing)


@step
def _draw(params: ClippedExp3Params, state: Exp3State, stream: Stream) -> tuple[int, float]:
    return exp3_draw(params.exp3, state, stream)


@step
def _update(params: ClippedExp3Params, state: Exp3State, lesson: Lesson) -> None:
    gain = 1.0 - lesson.loss
    bound = params.bound
    if -bound <= gain <= bound + 1.0:
        rescaled = (gain + bound) / (2.0 * bound + 1.0)
        told = Lesson(lesson.arm, lesson.importance, -rescaled, lesson.rounds)
        exp3_update(params.exp3, state, told)


register(ClippedExp3Params, _draw, _update)
add(ClippedExp3)


def clipped(problem: Problem) -> Tuning:
    """DP-EXP3-Lap (Tossou, Dimitrakakis 2017): the mixing of EXP3 for gains, and the clip."""
    require_horizon("dp-exp3-lap", "log(T) must be above 0", problem, lambda horizon: horizon >= 2)
    arms, rounds, epsilon = problem.size
    mixing = min(1.0, math.sqrt(arms * math.log(arms) / ((math.e - 1.0) * rounds)))
    parts = learner("clipped-exp3", arms, mixing=mixing, bound=math.log(rounds) / epsilon)
    return Tuning(parts, release("laplace", problem, 1))


register_algorithm(
    Algorithm(
        "dp-exp3-lap",
        "EXP3 on single noisy losses, clipped (Tossou and Dimitrakakis 2017)",
        "prior work",
        tune=clipped,
        as_published=True,
        local=True,
        comparison=True,
    )
)
