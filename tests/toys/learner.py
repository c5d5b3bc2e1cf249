"""A learner: stay with an arm as long as its losses are small, otherwise take any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna import learners
from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.streams import Stream, uniform
from bandanna.learners.steps import Lesson, register


class StayParams(NamedTuple):
    """How many arms, and what counts as small."""

    arms: int
    small: float


class StayState(NamedTuple):
    """The arm stayed with."""

    arm: NDArray[np.int64]


@dataclass(frozen=True)
class Stay(learners.CompiledLearner):
    """Stay with an arm while its losses are below a half."""

    arms: int
    name: ClassVar[str] = "toy-stay"

    def __post_init__(self) -> None:
        checks.set_fields(self, arms=checks.arms(self.arms))

    def params(self) -> StayParams:
        """Return the numbers for the steps."""
        return StayParams(self.arms, 0.5)

    def start(self) -> StayState:
        """Begin with no arm."""
        return StayState(np.full(1, -1))


@step
def _draw(params: StayParams, state: StayState, stream: Stream) -> tuple[int, float]:
    u = uniform(stream)
    arm = state.arm[0]
    if arm < 0 or u < 0.05:
        arm = int(u * 20.0 % 1.0 * params.arms)
    return arm, 1.0


@step
def _update(params: StayParams, state: StayState, lesson: Lesson) -> None:
    state.arm[0] = lesson.arm if lesson.loss < params.small else -1


register(StayParams, _draw, _update)
learners.add(Stay)
