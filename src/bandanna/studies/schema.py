"""What a study may vary: the axes of its grid, and the columns of its results.

Parameters of a policy that ``bandanna.spec`` declares with an axis are axes; algorithm and
environment are declared here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import make_dataclass
from typing import Any, NamedTuple

from bandanna._core import checks
from bandanna._core.types import InputError
from bandanna.algorithms import contestants, needs_epsilon
from bandanna.simulation.baselines import SAME
from bandanna.spec import Axis, Parameter, parameters, types
from bandanna.studies.contexts import CONTEXTUAL

Reader = Callable[[object], object]


class GridAxis(NamedTuple):
    """How one axis is read, kept and shown."""

    column: type
    """Type of its values in results: str, int or float."""
    read: Reader
    """Checks one value of a grid, and makes it what a cell holds."""
    shown: Axis


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
    bandits, with_experts = contestants(with_experts=False), contestants(with_experts=True)
    if str(value).removesuffix(SAME) not in (*bandits, *with_experts, *CONTEXTUAL):
        raise InputError(
            f"unknown algorithm {value!r}; there are {', '.join(bandits)}; with experts "
            f"{', '.join(with_experts)}; and with contexts {', '.join(CONTEXTUAL)}."
        )
    return str(value)


def is_private(algorithm: str) -> bool:
    """Whether an algorithm of a grid promises anything, and so needs an epsilon."""
    return algorithm in CONTEXTUAL or needs_epsilon(algorithm)


OWN = {
    "algorithm": GridAxis(str, _algorithm, Axis("algorithm", rivals_share=False)),
    "environment": GridAxis(str, _as_written, Axis("environment", 6, shown_first="first")),
}
"""The axes that are not parameters of a policy."""


def _axis_of(name: str, declared: Parameter) -> GridAxis:
    """Return the axis of a parameter, as ``Spec`` declares it."""
    assert declared.axis is not None
    column: type = int
    read: Reader = whole_number(name, int(declared.least or 0))
    if declared.choices:
        column, read = str, declared.check
    elif types()[name] in (float, float | None):
        column, read = float, _number(name, declared.check)
    return GridAxis(column, read, declared.axis)


AXES: dict[str, GridAxis] = OWN | {
    name: _axis_of(name, declared) for name, declared in parameters().items() if declared.axis
}
"""Every axis of a grid, and every column that says which setting a row of results is about."""

Setting: Any = make_dataclass(
    "Setting", [(name, object) for name in AXES], frozen=True, namespace={"__module__": __name__}
)
"""One combination of a grid, with a field for each axis; None where an axis is left out."""

SETTINGS = tuple(name for name in AXES if name != "algorithm")
"""The axes in whose values algorithms are compared."""
