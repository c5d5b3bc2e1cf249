"""What a study may vary: the axes of its grid, and the columns of its results.

Each axis is one field of ``Setting``, with all that studies and their reports need to know about
it. To add an axis, add a field; what it does is in ``Cell.policy`` or ``Source.make``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, get_type_hints

from bandanna._core import checks
from bandanna._core.types import InputError
from bandanna.algorithms import contestants
from bandanna.studies.source import Source

Reader = Callable[[object], object]


@dataclass(frozen=True)
class Axis:
    """How one axis is read, kept and shown."""

    column: type
    """Of its values in results: str, int or float."""
    read: Reader
    """Checks one value of a grid, and makes it what a cell holds."""
    title: str
    """What charts call it."""
    rivals_share: bool = True
    """Whether only algorithms with the same value of it compete."""
    private: bool = False
    """Whether it means nothing without privacy; such cells have None."""
    shown_first: Literal["first", "middle", "largest"] = "middle"
    """Which of its values a chart with a menu shows first."""
    importance: int = 0
    """Where a chart would be too large, the axes with the least are cut to one value first."""


def whole_number(name: str, at_least: int) -> Callable[[object], int]:
    """Return a reader of whole numbers that may be written as "1e6"."""

    def read(value: object) -> int:
        try:
            number: object = float(value) if isinstance(value, str) else value
        except ValueError:
            number = value
        return checks.whole(name, number, at_least, checks.MAX_ROUNDS)

    return read


def _number(name: str, check: Callable[[object], float]) -> Reader:
    """Return a reader of numbers that may be written as "1e-6"."""

    def read(value: object) -> float:
        try:
            return check(float(value) if isinstance(value, str) else value)
        except InputError:
            raise
        except ValueError:
            raise InputError(f"{name} must be a number, such as 0.1; got {value!r}.") from None

    return read


def _as_written(value: object) -> object:
    """Leave a value as it is: only the study knows in which folder it looks for files."""
    return value


def _algorithm(value: object) -> str:
    bandits, with_experts = contestants(advised=False), contestants(advised=True)
    if value not in (*bandits, *with_experts):
        raise InputError(
            f"unknown algorithm {value!r}; there are {', '.join(bandits)}; and with experts "
            f"{', '.join(with_experts)}."
        )
    return str(value)


@dataclass(frozen=True)
class Setting:
    """One combination of a grid; None where an axis is left out."""

    algorithm: Annotated[str, Axis(str, _algorithm, "algorithm", rivals_share=False)]
    environment: Annotated[
        Source,
        Axis(str, _as_written, "environment", shown_first="first", importance=6),
    ]
    epsilon: Annotated[
        float | None,
        Axis(
            float,
            _number("epsilon", partial(checks.positive, "epsilon")),
            "epsilon (smaller is more private)",
            private=True,
            importance=7,
        ),
    ]
    rounds: Annotated[
        int | None,
        Axis(int, whole_number("rounds", 1), "rounds T", shown_first="largest", importance=3),
    ]
    arms: Annotated[int | None, Axis(int, whole_number("arms", 2), "arms K", importance=5)]
    experts: Annotated[int | None, Axis(int, whole_number("experts", 1), "experts N", importance=4)]
    delta: Annotated[
        float | None,
        Axis(
            float,
            _number("delta", checks.delta),
            "delta (what may be spent)",
            private=True,
            importance=2,
        ),
    ]
    batch: Annotated[
        int | None,
        Axis(int, whole_number("batch", 1), "rounds in a batch", rivals_share=False, importance=1),
    ]
    per_person: Annotated[
        int | None,
        Axis(int, whole_number("per_person", 1), "places per person", private=True, importance=2),
    ]


AXES: dict[str, Axis] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Setting, include_extras=True).items()
}
"""Every axis of a grid, and every column that says which setting a row of results is about."""

SETTINGS = tuple(name for name in AXES if name != "algorithm")
"""The axes in whose values algorithms are compared."""
