"""An environment: arms take turns at being free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna import environments
from bandanna._core.grid import UNITS
from bandanna._core.streams import Stream
from bandanna.environments.base import Memory
from bandanna.environments.base import register as register_steps


class TurnParams(NamedTuple):
    """How many arms take turns."""

    arms: int


class Turns(environments.Environment):
    """In round t arm ``t mod arms`` is free and every other costs 1."""

    name = "toy-turns"
    comparator = "realised"

    def __init__(self, arms: int, rounds: int) -> None:
        self.arms, self.rounds = arms, rounds
        self._check_size()

    def params(self) -> TurnParams:
        """Return the number of arms."""
        return TurnParams(self.arms)

    def arm_totals(self, stops: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each arm's total loss."""
        arms = np.arange(self.arms)
        return stops[:, None] - (stops[:, None] - arms + self.arms - 1) // self.arms * 1.0


def _sum_losses(
    params: TurnParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    free = (stop - arm + params.arms - 1) // params.arms
    free -= (start - arm + params.arms - 1) // params.arms
    return (stop - start - free) * UNITS


register_steps(TurnParams, _sum_losses)
environments.register("toy-turns", Turns)
