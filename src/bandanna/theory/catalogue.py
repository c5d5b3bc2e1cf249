"""The catalogue of algorithms: what recipes, planner, command line, studies and docs read.

``register`` adds a row, also from outside the package; with a bandit algorithm comes its
conversion to experts.
"""

from __future__ import annotations

from bandanna._core.types import InputError
from bandanna.theory.algorithm import Algorithm, conversion
from bandanna.theory.rows import BANDITS, WITH_EXPERTS

DEFAULT = "adaptive"
"""What a private bandit runs unless told otherwise; see ``Plan.default``."""

IN_PARTS = "one-bit"
"""Whose learner, release or batch a private bandit replaces unless an algorithm is named."""

AUTO = "auto"
"""The private algorithm with the smallest guarantee for a problem with experts."""

_ROWS: dict[tuple[bool, str], Algorithm] = {}


def register(algorithm: Algorithm) -> None:
    """Add an algorithm under a name that is not taken.

    Examples
    --------
    See ``CONTRIBUTING.md``, and ``tests/theory/test_catalogue.py`` for a toy.
    """
    rows = [algorithm]
    if algorithm.replaceable and not algorithm.advised and not algorithm.local:
        rows.append(conversion(algorithm))
    for row in rows:
        if (row.advised, row.name) in _ROWS or row.name == AUTO:
            raise InputError(f"there is an algorithm {row.name!r} already.")
    _ROWS.update({(row.advised, row.name): row for row in rows})


def algorithms(*, advised: bool) -> list[Algorithm]:
    """Return every algorithm for bandits, or for bandits with expert advice; private ones first."""
    rows = [row for (with_experts, _), row in _ROWS.items() if with_experts == advised]
    return sorted(rows, key=lambda row: not row.private)


def names(*, advised: bool, private: bool | None = None) -> list[str]:
    """Return their names; of the private ones, of the others, or of all."""
    rows = algorithms(advised=advised)
    return [row.name for row in rows if private is None or row.private == private]


def contestants(*, advised: bool) -> list[str]:
    """Return what can be compared by name: all of them, and with experts also ``auto``."""
    return [*([AUTO] if advised else []), *names(advised=advised)]


def find(name: str, *, advised: bool) -> Algorithm:
    """Return an algorithm by name."""
    if (advised, name) not in _ROWS:
        known = ", ".join(contestants(advised=advised))
        where = "with experts there" if advised else "there"
        raise InputError(f"unknown algorithm {name!r}; {where} are {known}.")
    return _ROWS[advised, name]


def needs_epsilon(name: str) -> bool:
    """Whether a name stands for something private."""
    rows = [row for (_, known), row in _ROWS.items() if known == name]
    return any(row.private for row in rows) or name == AUTO


for _row in (*BANDITS, *WITH_EXPERTS):
    register(_row)
