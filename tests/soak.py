"""What runs in every test run, and what only ``make soak`` has the time for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest

Value = TypeVar("Value")


def mostly_soak(values: Iterable[Value], usual: Collection[Value]) -> list[object]:
    """Return parameters of a test, of which only the usual ones are run in every test run."""
    return [
        value if value in usual else pytest.param(value, marks=pytest.mark.soak) for value in values
    ]


def seeds(usual: int, all_of_them: int) -> list[object]:
    """Return two ranges of seeds: the usual ones, and all others for ``make soak``."""
    return [
        pytest.param(range(usual), id=f"{usual} seeds"),
        pytest.param(
            range(usual, all_of_them), id=f"{all_of_them - usual} more", marks=pytest.mark.soak
        ),
    ]
