"""The player who always plays the same arm: the best single expert, in hindsight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core import checks
from bandanna._core.compiled import step
from bandanna._core.streams import Stream
from bandanna._core.types import InputError
from bandanna.learners.base import CompiledLearner
from bandanna.learners.steps import Lesson, register


class FixedArmParams(NamedTuple):
    """Numbers for the compiled steps."""

    arm: int


class FixedArmState(NamedTuple):
    """How often it was updated; it changes nothing."""

    updates: NDArray[np.int64]


@dataclass(frozen=True)
class FixedArm(CompiledLearner):
    """Play one arm, whatever the losses.

    Parameters
    ----------
    arms
        Number of arms, at least 1.
    arm
        Index of the one to play.
    """

    arms: int
    arm: int = 0
    name: ClassVar[str] = "fixed"

    def __post_init__(self) -> None:
        arms = checks.whole("arms", self.arms, 1, checks.MAX_ARMS)
        arm = checks.whole("arm", self.arm, 0)
        if arm >= arms:
            raise InputError(f"arm must be an index below arms = {arms}; got {self.arm!r}.")
        checks.set_fields(self, arms=arms, arm=arm)

    def params(self) -> FixedArmParams:
        """Return the numbers for the compiled steps."""
        return FixedArmParams(self.arm)

    def start(self) -> FixedArmState:
        """Return the state before the first round."""
        return FixedArmState(np.zeros(1, dtype=np.int64))

    def chances(self, state: FixedArmState) -> NDArray[np.float64] | None:
        """Return the distribution of every draw."""
        chances: NDArray[np.float64] = np.eye(self.arms)[self.arm]
        return chances


@step
def _draw(params: FixedArmParams, state: FixedArmState, stream: Stream) -> tuple[int, float]:
    return params.arm, 1.0


@step
def _update(params: FixedArmParams, state: FixedArmState, lesson: Lesson) -> None:
    state.updates[0] += 1


register(FixedArmParams, _draw, _update)
