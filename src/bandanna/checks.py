"""Checks of what callers pass in: each error names the value, the reason and what would work."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from bandanna.types import InputError


def is_number(value: Any) -> bool:
    """Whether the value is a real number and not a truth value in disguise."""
    return isinstance(value, Real) and not isinstance(value, bool)


def positive(name: str, value: Any) -> float:
    """Require a finite number above zero."""
    if not is_number(value) or not math.isfinite(value) or value <= 0:
        raise InputError(f"{name} must be a finite number above 0, such as 0.5; got {value!r}.")
    return float(value)


def within(name: str, value: Any, low: float, high: float) -> float:
    """Require a number in the closed interval [low, high]."""
    if not is_number(value) or not low <= value <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}; got {value!r}.")
    return float(value)


def whole(name: str, value: Any, at_least: int) -> int:
    """Require a whole number that is large enough; 1e6 counts as one, 2.5 does not."""
    is_whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not is_whole or value < at_least:
        raise InputError(f"{name} must be a whole number, at least {at_least}; got {value!r}.")
    return int(value)
