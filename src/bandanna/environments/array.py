"""Losses from a table: the oblivious adversary, written out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna.compiled import step
from bandanna.environments.base import Environment
from bandanna.environments.steps import Memory, register
from bandanna.grid import UNITS, array_to_units
from bandanna.streams import Stream


class TableParams(NamedTuple):
    """Prefix sums: row t holds every arm's total before round t, in grid units."""

    prefix: NDArray[np.int64]


class LossTable(Environment):
    """A (rounds, arms) table of losses in [0, 1].

    Parameters
    ----------
    losses
        Anything NumPy can turn into such a table.

    Examples
    --------
    >>> import numpy as np
    >>> LossTable(np.array([[0.0, 1.0], [0.5, 0.25]])).arm_totals(np.array([1, 2]))
    array([[0.  , 1.  ],
           [0.5 , 1.25]])
    """

    name = "table"
    comparator = "realised"

    def __init__(self, losses: object) -> None:
        units = array_to_units(losses)
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
