"""What a finished experiment is counted to before anything is released: one value between the two.

Where the data is, each arm's people are counted and their outcomes added up, as integers: rows in
memory, or a query in a warehouse. From these numbers alone ``bandanna.logs`` releases and answers.

Outcomes are on the grid of ``bandanna._core.grid``: an outcome ``v`` from ``low`` to ``high`` is
``k = (v - low) / (high - low) * UNITS``, rounded to a whole number, from 0 to ``UNITS``. The square
of ``k`` is taken around the middle of the range and rounded down: ``(k - HALF)^2 // UNITS``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandanna._core.grid import UNITS, LossRange, check_range
from bandanna._core.types import ArmName, InputError

Integers = NDArray[np.int64]

HALF = UNITS // 2
LARGEST_SQUARE = HALF * HALF // UNITS


def squares_of(units: Integers, grid: int = UNITS) -> Integers:
    """Return squares around the middle of the range, in units of an even grid.

    Examples
    --------
    >>> squares_of(np.array([0, HALF, UNITS])).tolist()
    [262144, 0, 262144]
    """
    squares: Integers = (units - grid // 2) ** 2 // grid
    return squares


@dataclass(frozen=True, eq=False)
class Counted:
    """Public counts and private integer sums of each arm, or of each arm and cell.

    Nothing but a release may use the sums; ``repr`` does not show them.

    Parameters
    ----------
    names
        The arms.
    counts
        How many people (or rows) there are, by arm and cell; public. One cell if it has one axis.
    sums
        Their outcomes added up, in grid units. Private.
    squares
        Their squares added up, in grid units: see ``squares_of``. Private. None where outcomes are
        0 or 1, whose squares say nothing.
    outcome_range
        What 0 and ``UNITS`` stand for.
    outcome
        What is counted, such as visits.
    clip
        Whether what was outside of the range was counted as its nearer end.
    persons
        Whether everyone is counted once; otherwise rows are counted.
    mixed
        How many people met more than one arm: they count with the first.

    Examples
    --------
    >>> import numpy as np
    >>> counted = Counted.of_rows(("A", "B"), np.array([0, 1, 1]), np.array([0, 2**20, 2**19]))
    >>> counted.counts.tolist(), counted
    ([[1], [2]], Counted(names=('A', 'B'), counts=array([[1],
           [2]]), outcome_range=(0.0, 1.0), outcome='', clip=False, persons=False, mixed=0))
    """

    names: tuple[ArmName, ...]
    counts: Integers
    sums: Integers = field(repr=False)
    squares: Integers | None = field(repr=False)
    outcome_range: LossRange = (0.0, 1.0)
    outcome: str = ""
    clip: bool = False
    persons: bool = False
    mixed: int = 0

    def __post_init__(self) -> None:
        names = tuple(self.names)
        if len(names) < 2 or len(set(names)) < len(names):
            raise InputError(f"a log needs at least 2 arms, each named once; got {names!r}.")
        given = {"counts": self.counts, "sums": self.sums, "squares": self.squares}
        tables = {
            name: _table(name, value, len(names))
            for name, value in given.items()
            if value is not None
        }
        counts = tables["counts"]
        if (counts < 0).any() or any(table.shape != counts.shape for table in tables.values()):
            raise InputError("counts must be 0 or more, and sums and squares of the same shape.")
        # A sum that is impossible is not told of: only a release may look at sums.
        tables["sums"] = np.clip(tables["sums"], 0, counts * UNITS)
        if self.squares is not None:
            tables["squares"] = np.clip(tables["squares"], 0, counts * LARGEST_SQUARE)
        for name, value in (
            ("names", names),
            ("outcome_range", check_range(self.outcome_range)),
            *tables.items(),
        ):
            object.__setattr__(self, name, value)

    @property
    def size(self) -> int:
        """How many people, or rows, there are."""
        return int(self.counts.sum())

    @property
    def per(self) -> str:
        """What is counted."""
        return "people" if self.persons else "rows"

    @classmethod
    def of_rows(
        cls,
        names: Sequence[ArmName],
        arms: Integers,
        units: Integers,
        *,
        cells: Integers | None = None,
        width: int = 1,
        outcome_range: LossRange = (0.0, 1.0),
        outcome: str = "",
        clip: bool = False,
        persons: bool = False,
        mixed: int = 0,
    ) -> Counted:
        """Count rows: each has an arm's index, an outcome on the grid, and perhaps a cell."""
        where = arms * width + (0 if cells is None else cells)
        shape = len(names), width

        def added(values: Integers) -> Integers:
            totals = np.zeros(shape[0] * width, dtype=np.int64)
            np.add.at(totals, where, values)
            return totals.reshape(shape)

        return cls(
            tuple(names),
            added(np.ones_like(where)),
            added(units),
            added(squares_of(units)),
            outcome_range,
            outcome,
            clip,
            persons,
            mixed,
        )


def _table(name: str, value: ArrayLike, arms: int) -> Integers:
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} must be whole numbers; got numbers of type {array.dtype}.")
    table = array.astype(np.int64)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[0] != arms:
        raise InputError(f"{name} must have a row for each of {arms} arms; got {array.shape}.")
    return table
