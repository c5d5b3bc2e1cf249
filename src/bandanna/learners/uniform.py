"""The uniform player: learns nothing, and is what every learner must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna._core.streams import Stream, uniform
from bandanna.learners.base import CompiledLearner
from bandanna.learners.steps import Lesson, register


class UniformParams(NamedTuple):
    """Numbers for the compiled steps."""

    arms: int


class UniformState(NamedTuple):
    """How often each arm was updated; it changes nothing."""

    updates: NDArray[np.int64]


@dataclass(frozen=True)
class Uniform(CompiledLearner):
    """Draw every arm with the same probability, whatever the losses.

    Parameters
    ----------
    arms
        Number of arms, at least 2.
    """

    arms: int
    name: ClassVar[str] = "uniform"
    per_arm: ClassVar[tuple[str, ...]] = ("updates",)

    def params(self) -> UniformParams:
        """Return the numbers for the compiled steps."""
        return UniformParams(int(self.arms))

    def start(self) -> UniformState:
        """Return the state before the first round."""
        return UniformState(np.zeros(self.arms, dtype=np.int64))

    def chances(self, state: UniformState) -> NDArray[np.float64] | None:
        """Return the distribution of every draw."""
        chances: NDArray[np.float64] = np.full(self.arms, 1.0 / self.arms)
        return chances


@step
def _draw(params: UniformParams, state: UniformState, stream: Stream) -> tuple[int, float]:
    return int(uniform(stream) * params.arms), float(params.arms)


@step
def _update(params: UniformParams, state: UniformState, lesson: Lesson) -> None:
    state.updates[lesson.arm] += 1


register(UniformParams, _draw, _update)
