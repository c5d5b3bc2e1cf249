"""What a study's grid may vary, and how each value is read and checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bandanna import checks
from bandanna.environments import check_environment
from bandanna.studies.cell import Source
from bandanna.studies.loss_file import SUFFIXES, LossFile, read_losses
from bandanna.theory.catalogue import contestants, needs_epsilon
from bandanna.types import InputError

MOST_CELLS = 100_000


def _algorithm(value: Any) -> str:
    bandits, with_experts = contestants(advised=False), contestants(advised=True)
    if value not in (*bandits, *with_experts):
        raise InputError(
            f"unknown algorithm {value!r}; there are {', '.join(bandits)}; and with experts "
            f"{', '.join(with_experts)}."
        )
    return str(value)


def count_of(name: str, at_least: int) -> Callable[[Any], int]:
    """Return a reader of whole numbers that may be written as "1e6"."""

    def check(value: Any) -> int:
        return checks.whole(name, checks.spelled(value), at_least, checks.MAX_ROUNDS)

    return check


def _number_of(name: str, check: Callable[[Any], float]) -> Callable[[Any], float]:
    """Return a reader of numbers that may be written as "1e-6"."""

    def read(value: Any) -> float:
        number = checks.spelled(value)
        if isinstance(number, str):
            raise InputError(f"{name} must be a number, such as 0.1; got {value!r}.")
        return check(number)

    return read


AXES: dict[str, Callable[[Any], Any]] = {
    "algorithm": _algorithm,
    "environment": lambda value: value,  # needs the study's folder: see Study
    "epsilon": _number_of("epsilon", lambda value: checks.positive("epsilon", value)),
    "rounds": count_of("rounds", 1),
    "arms": count_of("arms", 2),
    "batch": count_of("batch", 1),
    "experts": count_of("experts", 1),
    "delta": _number_of("delta", checks.delta),
}
"""What a grid may vary, and how each value is read. Left out, an axis has one value: None."""

NEEDED = ("algorithm", "environment")


def checked_grid(grid: Any) -> dict[str, tuple[Any, ...]]:
    """Require lists of different values for known axes, and read every value."""
    if not isinstance(grid, Mapping):
        raise InputError(f"the grid must be a table of lists; got {grid!r}.")
    refuse_unknown("keys in [grid]", grid, AXES)
    missing = [name for name in NEEDED if name not in grid]
    if missing:
        raise InputError(f"the grid needs {' and '.join(missing)}, each a list of values.")
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InputError(f"{name} must be a list of values, such as [...]; got {values!r}.")
        if not values:
            raise InputError(f"{name} is empty; give it a value, or leave it out.")
    size = math.prod(len(values) for values in grid.values())
    if size > MOST_CELLS:
        raise InputError(f"the grid has {size:,} combinations, more than {MOST_CELLS:,}.")
    checked = {}
    for name, read in AXES.items():
        if name in grid:
            values = tuple(read(value) for value in grid[name])
            if any(value in values[:place] for place, value in enumerate(values)):
                raise InputError(f"{name} names a value twice: {list(grid[name])!r}.")
            checked[name] = values
    private = [name for name in checked["algorithm"] if needs_epsilon(name)]
    if private and "epsilon" not in checked:
        raise InputError(f"the grid needs epsilon for {private[0]}, such as epsilon = [1.0, 0.1].")
    return checked


def read_source(value: Any, folder: Path) -> tuple[Source, LossFile | None]:
    """Read one environment of a grid: a name, a name with options, or a file."""
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        options = {name: option for name, option in value.items() if name != "name"}
        fixed = [name for name in ("arms", "rounds", "experts") if name in options]
        if fixed:
            raise InputError(f"{' and '.join(fixed)} of an environment belong into the grid.")
        check_environment(value["name"], options)
        if not all(isinstance(option, bool | int | float) for option in options.values()):
            raise InputError(f"an environment's options are numbers; got {value!r}.")
        return Source(value["name"], tuple(sorted(options.items()))), None
    if not isinstance(value, str):
        raise InputError(
            f"an environment is a name, a file, or {{name = ..., option = ...}}; got {value!r}."
        )
    if not value.endswith(SUFFIXES):
        check_environment(value)
        return Source(value), None
    losses = read_losses(folder / value)
    return Source(value, content=losses.content, arms=losses.arms), losses


def refuse_unknown(what: str, given: Any, known: Any) -> None:
    """Refuse names that mean nothing here, and say which do."""
    unknown = [str(name) for name in given if name not in known]
    if unknown:
        raise InputError(f"unknown {what}: {', '.join(unknown)}; there are {', '.join(known)}.")
