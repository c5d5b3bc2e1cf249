"""What ``make test`` runs, and what is left to ``make test SLOW=1`` and to ``make soak``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest

Value = TypeVar("Value")


def mostly_soak(
    values: Iterable[Value], usual: Collection[Value], quick: Collection[Value] | None = None
) -> list[object]:
    """Return parameters of a test: only the usual ones are run before anything lands.

    If some of these are quick, the others are left to ``make test SLOW=1``.
    """
    some = mostly_slow(usual, usual if quick is None else quick)
    found = dict(zip(usual, some, strict=True))
    return [found.get(value, pytest.param(value, marks=pytest.mark.soak)) for value in values]


def mostly_slow(values: Iterable[Value], quick: Collection[Value]) -> list[object]:
    """Return parameters of a test, of which only the quick ones are run by ``make test``."""
    return [
        value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values
    ]


def seeds(usual: int, all_of_them: int) -> list[object]:
    """Return two ranges of seeds: the usual ones, and all others for ``make soak``."""
    return [
        pytest.param(range(usual), id=f"{usual} seeds"),
        pytest.param(
            range(usual, all_of_them), id=f"{all_of_them - usual} more", marks=pytest.mark.soak
        ),
    ]
