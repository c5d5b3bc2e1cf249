"""Exponentials bounded by exact fractions, so that a promise can be checked without rounding."""

from __future__ import annotations

import math
from fractions import Fraction


def log_of(ratio: Fraction) -> float:
    """Logarithm of a fraction whose parts may be too large for floats."""
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def exp_floor(x: Fraction, bits: int = 256) -> Fraction:
    """Return a fraction at most exp(x), within a relative 2**-(bits - 32) of it or so.

    ``x`` must not be negative. The Taylor series is summed in integers of ``bits`` binary places;
    every term is positive and rounded down, so the sum is a lower bound.

    Examples
    --------
    >>> from fractions import Fraction
    >>> import math
    >>> float(exp_floor(Fraction(1, 2))) == math.exp(0.5)
    True
    """
    if x < 0:
        raise ValueError(f"exp_floor needs x >= 0; got {x}.")
    term = total = 1 << bits
    k = 1
    while term:
        term = term * x.numerator // (x.denominator * k)
        total += term
        k += 1
    return Fraction(total, 1 << bits)
