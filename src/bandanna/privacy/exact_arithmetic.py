"""Exact arithmetic for promises: exponentials as fractions, the integers of the one-bit release.

Nothing but integers and fractions, so that a promise can be checked without rounding. A person's
device imports this without NumPy.
"""

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


def one_bit_integers(epsilon: float, units: int) -> tuple[int, int]:
    """Return the smallest a, for a fine b, with ``(a + b M) / a <= exp(epsilon)``; M is ``units``.

    Examples
    --------
    >>> a, b = one_bit_integers(1.0, units=2**20)
    >>> integers_satisfy(a, b, 1.0, 2**20), integers_satisfy(a - 1, b, 1.0, 2**20)
    (True, False)
    """
    growth = exp_floor(Fraction(epsilon), bits=256 + _extra_bits(epsilon)) - 1
    # b as a power of two large enough that rounding a up to an integer costs less than 2**-40.
    b = 1 << max(0, 40 + math.ceil(epsilon / math.log(2)) - (units.bit_length() - 1))
    a = math.ceil(Fraction(b * units) / growth)
    if not integers_satisfy(a, b, epsilon, units):
        raise AssertionError(f"no valid one-bit integers for epsilon {epsilon!r}")
    return a, b


def integers_satisfy(a: int, b: int, epsilon: float, units: int) -> bool:
    """Whether ``(a + b M) / a <= exp(epsilon)``, proved in exact arithmetic; M is ``units``."""
    bound = exp_floor(Fraction(epsilon), bits=256 + _extra_bits(epsilon))
    return a > 0 and b > 0 and Fraction(a + b * units, a) <= bound


def _extra_bits(epsilon: float) -> int:
    """More binary places for a tiny epsilon, whose exponential is barely above 1."""
    return max(0, -math.frexp(epsilon)[1])
