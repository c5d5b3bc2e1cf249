"""Checks of what callers pass in: each error names the value, the reason and what would work."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from bandanna.types import InputError


def is_number(value: Any) -> bool:
    """Whether the value is a real number and not a truth value in disguise."""
    return isinstance(value, Real) and not isinstance(value, bool)


def as_float(value: Any) -> float:
    """Return a number as a float, or NaN for what is none or does not fit."""
    try:
        return float(value) if is_number(value) else math.nan
    except OverflowError:
        return math.nan


def positive(name: str, value: Any) -> float:
    """Require a finite number above zero."""
    number = as_float(value)
    if not math.isfinite(number) or number <= 0.0:
        raise InputError(f"{name} must be a finite number above 0, such as 0.5; got {value!r}.")
    return number


def within(name: str, value: Any, low: float, high: float) -> float:
    """Require a number in the closed interval [low, high]."""
    number = as_float(value)
    if not low <= number <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}; got {value!r}.")
    return number


def settle(thing: Any, **values: Any) -> None:
    """Store checked values in a frozen dataclass, as plain Python numbers."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)


def whole(name: str, value: Any, at_least: int) -> int:
    """Require a whole number that is large enough; 1e6 counts as one, 2.5 does not."""
    is_whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not is_whole or value < at_least:
        raise InputError(f"{name} must be a whole number, at least {at_least}; got {value!r}.")
    return int(value)
