"""Losses from a table: the oblivious adversary, written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna._core.compiled import step
from bandanna._core.grid import UNITS, LossRange, array_to_units, check_range
from bandanna._core.streams import Stream
from bandanna.environments.base import Environment
from bandanna.environments.steps import Memory, register


class TableParams(NamedTuple):
    """Prefix sums: row t holds every arm's total before round t, in grid units."""

    prefix: NDArray[np.int64]


class LossTable(Environment):
    """A (rounds, arms) table of losses.

    Parameters
    ----------
    losses
        Anything NumPy can turn into such a table.
    loss_range
        Smallest and largest possible loss.
    arm_names
        What the arms are called.

    Examples
    --------
    >>> import numpy as np
    >>> LossTable(np.array([[0.0, 1.0], [0.5, 0.25]])).arm_totals(np.array([1, 2]))
    array([[0.  , 1.  ],
           [0.5 , 1.25]])
    """

    name = "table"
    comparator = "realised"

    def __init__(
        self,
        losses: object,
        loss_range: LossRange = (0.0, 1.0),
        arm_names: Sequence[str] = (),
    ) -> None:
        self.loss_range = check_range(loss_range)
        self.arm_names = tuple(arm_names)
        units = array_to_units(losses, loss_range=self.loss_range)
        self.rounds, self.arms = units.shape
        prefix = np.zeros((self.rounds + 1, self.arms), dtype=np.int64)
        np.cumsum(units, axis=0, out=prefix[1:])
        self._params = TableParams(prefix)

    def params(self) -> TableParams:
        """Return the prefix sums."""
        return self._params

    def arm_totals(self, stops: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return each arm's total loss before each of the given rounds."""
        return self._params.prefix[stops] / UNITS


@step
def _sum_losses(
    params: TableParams, memory: Memory, arm: int, start: int, stop: int, stream: Stream
) -> int:
    return params.prefix[stop, arm] - params.prefix[start, arm]  # type: ignore[no-any-return]


register(TableParams, _sum_losses)
