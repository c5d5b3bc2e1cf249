"""Values as integers on the grid of losses, by arithmetic that is the same on every engine.

Everything here works on single values with one rounding at each step, as IEEE 754 prescribes, or on
integers: no engine adds up floating-point numbers, whose sum would depend on the order. So sums
are the same to the bit wherever they are counted, and equal to those of ``_core.grid``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bandanna._core.grid import UNITS, LossRange

if TYPE_CHECKING:
    import ibis

WHOLE = 2.0**52
"""Adding it to a number from 0 to 2^51 rounds to a whole one, half to even."""
BITS = UNITS.bit_length() - 1
LARGEST = 2**34
"""A single fact counts at most so many of its smallest parts: a thousand times the range."""
TINY = 2.0**-100
FINE = 6
"""A range is at least 10^6 of the smallest parts that facts are counted in, and less than 10^7."""


def clipped(value: ibis.Value, low: float, high: float, missing: float) -> ibis.Value:
    """Move a floating-point value into a range; NULL and NaN become ``missing``."""
    import ibis

    return ibis.cases(
        (value.isnan(), missing),
        (value >= high, high),
        (value > low, value),
        (value <= low, low),
        else_=missing,
    ).cast("float64")


def on_grid(value: ibis.Value, loss_range: LossRange) -> ibis.Value:
    """Return a value inside the range as grid units, rounded half to even."""
    low, high = loss_range
    above = _without_tiny(value - low, high - low)
    return rounded(above / (high - low) * float(UNITS))


def rounded(value: ibis.Value) -> ibis.Value:
    """Round a number from 0 to 2^51 half to even, as an integer."""
    return ((value + WHOLE) - WHOLE).cast("int64")


def square(units: ibis.Value) -> ibis.Value:
    """Return the square of the distance from the middle, on the same grid, rounded down."""
    apart = units - UNITS // 2
    return (apart * apart) >> BITS


def nearest_to_zero(loss_range: LossRange) -> float:
    """Return what counts for someone of whom nothing is known: 0, or the end that is nearest."""
    low, high = loss_range
    return min(max(0.0, low), high)


def parts_of(loss_range: LossRange) -> float:
    """Return in how many parts of 1 facts are counted: a power of ten.

    Examples
    --------
    >>> parts_of((0, 200)), parts_of((0, 1)), parts_of((0, 5e7))
    (10000.0, 1000000.0, 0.1)
    """
    width = loss_range[1] - loss_range[0]
    return float(f"1e{FINE - math.floor(math.log10(width))}")


def in_parts(value: ibis.Value, parts: float) -> ibis.Value:
    """Return a fact as a whole number of its smallest parts; NULL and NaN are 0."""
    most = LARGEST / parts
    inside = _without_tiny(clipped(value, -most, most, 0.0), most)
    return (inside * parts + 0.5).floor().cast("int64")


def _without_tiny(value: ibis.Value, width: float) -> ibis.Value:
    """Return 0 for what rounds to it anyway: PostgreSQL refuses a product that is too small."""
    import ibis

    return ibis.ifelse(value.abs() < width * TINY, 0.0, value)
