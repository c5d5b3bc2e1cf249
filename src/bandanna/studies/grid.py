"""Reading a study's grid: lists of values, each checked by its axis."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from bandanna._core.types import InputError
from bandanna.algorithms import needs_epsilon
from bandanna.studies.schema import AXES

MOST_CELLS = 100_000


def checked_grid(grid: object) -> dict[str, tuple[object, ...]]:
    """Require lists of different values for known axes, and read every value."""
    if not isinstance(grid, Mapping):
        raise InputError(f"the grid must be a table of lists; got {grid!r}.")
    refuse_unknown("keys in [grid]", grid, AXES)
    missing = [name for name in ("algorithm", "environment") if name not in grid]
    if missing:
        example = '[grid] with algorithm = ["one-bit"] and environment = ["trial"]'
        raise InputError(f"the grid needs {' and '.join(missing)}; for instance {example}.")
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InputError(f"{name} must be a list of values, such as [...]; got {values!r}.")
        if not values:
            raise InputError(f"{name} is empty; give it a value, or leave it out.")
    size = math.prod(len(values) for values in grid.values())
    if size > MOST_CELLS:
        raise InputError(f"the grid has {size:,} combinations, more than {MOST_CELLS:,}.")
    checked = {}
    for name, axis in AXES.items():
        if name in grid:
            values = tuple(axis.read(value) for value in grid[name])
            if any(value in values[:place] for place, value in enumerate(values)):
                raise InputError(f"{name} names a value twice: {list(grid[name])!r}.")
            checked[name] = values
    private = [name for name in map(str, checked["algorithm"]) if needs_epsilon(name)]
    if private and "epsilon" not in checked:
        raise InputError(f"the grid needs epsilon for {private[0]}, such as epsilon = [1.0, 0.1].")
    return checked


def refuse_unknown(what: str, given: Mapping[str, object], known: Collection[str]) -> None:
    """Refuse names that mean nothing here, and say which do."""
    unknown = [str(name) for name in given if name not in known]
    if unknown:
        raise InputError(f"unknown {what}: {', '.join(unknown)}; there are {', '.join(known)}.")
