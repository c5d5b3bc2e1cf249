"""What was released of a log: the one value between its release and what is said of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandanna.one_look import Arm

Floats = NDArray[np.float64]


class ReleasedCells(NamedTuple):
    """A row for each arm, a column for each cell; losses are in [0, 1]."""

    counts: Floats
    sums: Floats
    squares: Floats
    """Around 1/2."""
    scale: float
    """Of the noise."""
    present: bool = False
    """Whether there is noise in the counts as well."""

    def of(self, cells: NDArray[np.int64]) -> ReleasedCells:
        """Return some cells."""
        tables = self.counts[:, cells], self.sums[:, cells], self.squares[:, cells]
        return ReleasedCells(*tables, self.scale, self.present)

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Each arm, in all of its cells together."""
        return tuple(
            Arm(
                float(count.sum()),
                float(total.sum()),
                float(square.sum()),
                self.scale,
                float(count.size if self.present else (count > 0).sum()),
                self.present,
            )
            for count, total, square in zip(self.counts, self.sums, self.squares, strict=True)
        )
